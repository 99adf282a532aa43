package observe

import (
	"errors"
	"math"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/sim"
)

const ms = time.Millisecond

// TestThreadMeter: what threads used is added up over their births and ends, and never runs backwards.
func TestThreadMeter(t *testing.T) {
	k := sim.New(sim.Config{CPUs: 4, Version: 1, BurstFile: true, Seed: 1})
	for _, group := range []string{"/lab/a", "/lab/a/inner"} {
		k.AddGroup(group)
		k.SetTasks(group, 1)
	}
	tree, err := cgroup.Detect(k)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	var runtimes map[int]time.Duration
	host := threads(func(tids []int) map[int]time.Duration {
		asked = len(tids)
		return runtimes
	})
	r, g, now := &Reader{Tree: tree, Host: host}, &Group{}, k.Now()
	g.Path = "/lab/a"
	for i, step := range []struct {
		what string
		used map[int]time.Duration
		want time.Duration
	}{
		{"what was used before the first look does not count", map[int]time.Duration{1: 500 * ms}, 0},
		{"one goes on", map[int]time.Duration{1: 530 * ms}, 30 * ms},
		{"a young one is born", map[int]time.Duration{1: 530 * ms, 2: 20 * ms}, 50 * ms},
		{"one that moved in cannot have run longer than since the last look",
			map[int]time.Duration{1: 530 * ms, 2: 20 * ms, 3: time.Hour}, 150 * ms},
		{"one ends", map[int]time.Duration{2: 25 * ms, 3: time.Hour}, 155 * ms},
		{"its number is used again", map[int]time.Duration{2: 5 * ms, 3: time.Hour}, 155 * ms},
		{"all end", nil, 155 * ms},
		{"and one begins", map[int]time.Duration{9: 10 * ms}, 165 * ms},
	} {
		runtimes = step.used
		if runtimes == nil {
			runtimes = map[int]time.Duration{}
		}
		if got := r.threadUsage(g, now.Add(time.Duration(i)*100*ms)); got != step.want {
			t.Errorf("%s: used %v, want %v", step.what, got, step.want)
		}
	}
	if asked != 2 {
		t.Errorf("asked for %d threads, want those of the group and of the one in it", asked)
	}
	g.Path = "/lab/gone"
	if got := r.threadUsage(g, now.Add(time.Second)); got != 165*ms {
		t.Errorf("of a group that is gone: %v, want what is known", got)
	}
}

// threads is a host that only knows of threads.
type threads func([]int) map[int]time.Duration

func (f threads) Threads(tids []int) map[int]time.Duration { return f(tids) }
func (threads) Online() (int, error)                       { return 0, nil }
func (threads) Busy() (time.Duration, error)               { return 0, nil }

// meteredHost answers as it is told.
type meteredHost struct {
	threads
	cpus           int
	busy           time.Duration
	online, failed error
}

func (h *meteredHost) Online() (int, error)         { return h.cpus, h.online }
func (h *meteredHost) Busy() (time.Duration, error) { return h.busy, h.failed }

func TestNodeMeter(t *testing.T) {
	broken := errors.New("broken")
	type step struct {
		at, busy       time.Duration
		cpus           int
		online, failed error
		wantCPUs       int
		known          bool
		used           float64
	}
	for name, steps := range map[string][]step{
		"a mean needs a span": {{busy: time.Hour, cpus: 2, wantCPUs: 2},
			{at: 149 * ms, busy: time.Hour + 149*ms, cpus: 2, wantCPUs: 2},
			{at: 150 * ms, busy: time.Hour + 150*ms, cpus: 2, wantCPUs: 2, known: true, used: 1}},
		"and looks back no further": {{cpus: 4, wantCPUs: 4},
			{at: time.Second, busy: 4 * time.Second, cpus: 4, wantCPUs: 4, known: true, used: 4},
			{at: 2 * time.Second, busy: 4 * time.Second, cpus: 4, wantCPUs: 4, known: true, used: 0},
			{at: 2100 * ms, busy: 4100 * ms, cpus: 4, wantCPUs: 4, known: true, used: 1. / 11}},
		"after an error it begins anew": {{cpus: 2, wantCPUs: 2}, {at: 200 * ms, failed: broken, cpus: 2, wantCPUs: 2},
			{at: 400 * ms, busy: time.Second, cpus: 2, wantCPUs: 2},
			{at: 600 * ms, busy: 1200 * ms, cpus: 2, wantCPUs: 2, known: true, used: 1}},
		"without CPUs nothing is known": {{online: broken},
			{at: time.Second, busy: time.Second, online: broken, used: 1},
			{at: 1200 * ms, busy: 1200 * ms, cpus: 2, wantCPUs: 2, known: true, used: 1}},
		"CPUs are counted again after 2 s": {{cpus: 2, wantCPUs: 2}, {at: 1900 * ms, cpus: 8, wantCPUs: 2, known: true},
			{at: 2 * time.Second, cpus: 8, wantCPUs: 8, known: true},
			{at: 5 * time.Second, cpus: 1, online: broken, wantCPUs: 8, known: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var m NodeMeter
			start := sim.New(sim.Config{}).Now()
			for _, s := range steps {
				n := m.Measure(start.Add(s.at), &meteredHost{cpus: s.cpus, busy: s.busy, online: s.online,
					failed: s.failed}, 70)
				if n.CPUs != s.wantCPUs || n.Capacity != float64(s.wantCPUs) || n.Known != s.known ||
					math.Abs(n.Used-s.used) > 1e-9 || n.ThresholdPercent != 70 {
					t.Errorf("at %v: %+v, want %d CPUs, known %v, used %v", s.at, n, s.wantCPUs, s.known, s.used)
				}
			}
		})
	}
}
