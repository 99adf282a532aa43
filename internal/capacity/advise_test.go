package capacity

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/trace"
)

// exponential is a recording of exponential demand with a mean in shares of the machine.
func exponential(name string, mean float64, n int) trace.Series {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	s := trace.Series{Name: name, Limit: math.Inf(1)}
	for range n {
		s.Used = append(s.Used, mean*random.ExpFloat64())
	}
	return s
}

// save writes a recording of a machine of four CPUs.
func save(t *testing.T, name string, s trace.Series) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := trace.Save(file, trace.Trace{Period: 100 * time.Millisecond, CPUs: 4,
		Series: []trace.Series{s}}); err != nil {
		t.Fatal(err)
	}
	return file
}

// question is the part of one that says how many containers there are.
type question struct {
	cgroups     int
	limit, cpus float64
}

// TestCounts: the number of containers and their limits come from the question, else from the recording.
func TestCounts(t *testing.T) {
	s := exponential("web", 0.02, 100)
	file := save(t, "free.npy", s)
	s.Limit = 0.5
	limited := save(t, "limited.npy", s)
	for _, tt := range []struct {
		files       []string
		flags       question
		count       int
		limit, mean float64 // of the first, in CPUs
	}{
		{[]string{limited}, question{}, 8, 0.5, 0.08},
		{[]string{limited}, question{cpus: 2}, 4, 0.5, 0.08},
		{[]string{limited}, question{cgroups: 5}, 5, 0.5, 0.08},
		{[]string{limited}, question{limit: 0.4}, 10, 0.4, 0.08},
		{[]string{file}, question{cgroups: 5}, 5, 0.8, 0.08},
		{[]string{limited, file}, question{}, 2, 0.5, 0.08},
	} {
		f := tt.flags
		d, err := Load(tt.files, f.cpus, f.limit)
		if err != nil {
			t.Fatal(err)
		}
		if f.cgroups == 0 {
			if f.cgroups, err = d.Fit(f.limit); err != nil {
				t.Fatal(err)
			}
		}
		d.own = f.limit == 0
		n, _, err := d.node(Case{Containers: f.cgroups})
		if err != nil {
			t.Fatal(err)
		}
		c := n.Containers[0]
		if len(n.Containers) != tt.count || math.Abs(c.Quota*d.cpus-tt.limit) > 1e-9 ||
			math.Abs(c.Demand.Mean()*d.cpus/tt.mean-1) > 0.2 {
			t.Errorf("%+v: %d containers with %g CPUs that want %g, want %d with %g that want %g", tt.flags,
				len(n.Containers), c.Quota*d.cpus, c.Demand.Mean()*d.cpus, tt.count, tt.limit, tt.mean)
		}
	}
}

// TestFitIsBounded: a limit of which more containers fit than the model takes is an error.
func TestFitIsBounded(t *testing.T) {
	for limit, want := range map[float64]int{8: 1, 0.5: 8, 8.0 / (1 << 17): MostContainers, 6e-5: 0, 1e-300: 0} {
		d, err := Load([]string{save(t, "web.npy", exponential("web", 0.02, 100))}, 0, limit)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.Fit(limit); got != want || (err != nil) != (want == 0) {
			t.Errorf("limits of %g CPUs: %d, %v; want %d", limit, got, err, want)
		}
	}
}

// TestBusyLeavesOutTheIdle: one container that does nothing is no reason to say nothing of the others.
func TestBusyLeavesOutTheIdle(t *testing.T) {
	d := &Recordings{}
	list, err := d.Busy([]trace.Series{{Name: "idle", Used: make([]float64, 2)},
		{Name: "web", Used: []float64{0.2, 0}}})
	if err != nil || len(list) != 1 || list[0].Name != "web" || len(d.notes) != 1 ||
		!strings.Contains(d.notes[0], `"idle" is left out`) {
		t.Errorf("%v, %q, %v", list, d.notes, err)
	}
}

// TestLimitWithGrantedBurst: where no burst is granted, the limit that does with the granted one is that without any.
func TestLimitWithGrantedBurst(t *testing.T) {
	a, b := exponential("a", 0.2, 1000), exponential("b", 0.1, 1001)
	a.Limit, b.Limit = 3, 3 // of 4 CPUs
	for _, files := range [][]string{{save(t, "a.npy", a)}, {save(t, "a.npy", a), save(t, "b.npy", b)}} {
		d, err := Load(files, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Question{Containers: 2, Target: 0.999, Throttled: 0.01, MostBurst: 1, Periods: 100_000}.Advise(d)
		if err != nil || got.Granted != 0 || !got.Stable {
			t.Fatalf("%+v, %v", got, err)
		}
		for _, k := range got.Kinds {
			if want := float64(k.Count) * (k.Limit - k.LimitAlone); k.LimitBurst != k.LimitAlone || k.Saving != want {
				t.Errorf("%d recordings: %+v", len(files), k)
			}
		}
	}
}
