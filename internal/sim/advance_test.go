package sim_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/sim"
)

// limited is a machine whose container has this limit, and stands at the beginning of a period of it.
func limited(t *testing.T, cpus int, b cpu.Bandwidth) (*sim.Kernel, *cgroup.Tree) {
	t.Helper()
	k, tree := machine(t, sim.Config{CPUs: cpus, Version: 1, BurstFile: true, Seed: 1})
	for _, w := range []struct {
		file string
		d    time.Duration
	}{{"period", b.Period}, {"quota", b.Quota}, {"burst", b.Burst}} {
		name := "cpu/pod/a/cpu.cfs_" + w.file + "_us"
		if err := k.WriteFile(name, fmt.Append(nil, w.d.Microseconds())); err != nil {
			t.Fatal(err)
		}
	}
	k.Advance(k.NextExpiry("/pod/a").Sub(k.Now()))
	return k, tree
}

func counters(t *testing.T, tree *cgroup.Tree, group string) cpu.Counters {
	t.Helper()
	c, err := tree.Counters(group)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var fifth = cpu.Bandwidth{Quota: 20 * ms, Period: 100 * ms}

func TestSpinnersGetTheirQuota(t *testing.T) {
	for threads, stood := range map[int]time.Duration{1: 80 * ms, 2: 2 * 90 * ms} {
		k, tree := limited(t, 2, fifth)
		k.SetLoad("/pod/a", sim.Spin(threads))
		before := counters(t, tree, "/pod/a")
		k.Advance(time.Second)
		got := counters(t, tree, "/pod/a")
		want := cpu.Counters{
			Usage: 200 * ms, Periods: before.Periods + 10, Throttled: 10, ThrottledTime: 10 * stood,
			HasUsage: true, HasBursts: true,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d threads: %s", threads, diff)
		}
		if pod := counters(t, tree, "/pod"); pod.Usage != 200*ms || k.Busy() != 200*ms {
			t.Errorf("%d threads: pod used %v, machine %v; want 200ms", threads, pod.Usage, k.Busy())
		}
	}
}

// The counters book a throttle when it ends: until then only the hidden truth knows of it.
func TestThrottledTimeIsBookedAtTheEnd(t *testing.T) {
	k, tree := limited(t, 2, fifth)
	k.SetLoad("/pod/a", sim.Spin(1))
	k.Advance(60 * ms)
	if c := counters(t, tree, "/pod/a"); c.ThrottledTime != 0 || k.Throttled("/pod/a") != 40*ms {
		t.Errorf("in the throttle: counted %v, true %v; want 0 and 40ms", c.ThrottledTime, k.Throttled("/pod/a"))
	}
	if err := tree.SetQuota("/pod/a", 20*ms); err != nil {
		t.Fatal(err)
	}
	if c := counters(t, tree, "/pod/a"); c.ThrottledTime != 40*ms || c.Throttled != 0 {
		t.Errorf("ended by a write: %+v, want 40ms and no throttled period", c)
	}
}

func TestRewritesGrantRuntime(t *testing.T) {
	k, tree := limited(t, 2, cpu.Bandwidth{Quota: 20 * ms, Period: time.Second})
	k.SetLoad("/pod/a", sim.Spin(1))
	for range 9 {
		k.Advance(100 * ms)
		if err := tree.SetQuota("/pod/a", 20*ms); err != nil {
			t.Fatal(err)
		}
		log := k.Writes()
		if last := log[len(log)-1]; last.Granted != 20*ms {
			t.Fatalf("the write granted %v by the log, want 20ms", last.Granted)
		}
	}
	k.Advance(100 * ms)
	if used := k.Used("/pod/a"); used != 200*ms {
		t.Errorf("used %v in a period, want ten quotas", used)
	}
	periods := k.Periods("/pod/a")
	if last := periods[len(periods)-1]; last.Used != 200*ms || last.To.Sub(last.From) != time.Second ||
		last.To != k.Now() {
		t.Errorf("the period is logged as %+v", last)
	}
}

func TestJobsAndBurst(t *testing.T) {
	for _, c := range []struct {
		name      string
		burst     time.Duration
		latency   time.Duration
		throttled int64
		bursts    int64
		saved     time.Duration
	}{
		{"no burst", 0, 115 * ms, 4, 0, 0},
		{"burst", 20 * ms, 35 * ms, 0, 4, 60 * ms},
	} {
		b := fifth
		b.Burst = c.burst
		k, tree := limited(t, 2, b)
		k.Advance(100 * ms) // the bank fills
		k.SetLoad("/pod/a", sim.Periodic(300*ms, sim.Fixed(35*ms), 1))
		k.Advance(1200 * ms)
		got := counters(t, tree, "/pod/a")
		if got.Usage != 140*ms || got.Throttled != c.throttled || got.Bursts != c.bursts || got.BurstTime != c.saved {
			t.Errorf("%s: %+v; want 140ms, %d throttled, %d bursts of %v", c.name, got, c.throttled, c.bursts, c.saved)
		}
		responses := k.Responses("/pod/a")
		if len(responses) != 4 {
			t.Errorf("%s: %d responses, want 4", c.name, len(responses))
		}
		for _, r := range responses {
			if r.Latency() != c.latency || r.Cost != 35*ms {
				t.Errorf("%s: took %v for %v, want %v for 35ms", c.name, r.Latency(), r.Cost, c.latency)
			}
		}
	}
}

// The timer of a group without demand stops after one idle period, and keeps its phase.
func TestTimerStops(t *testing.T) {
	k, tree := limited(t, 2, fifth)
	k.SetLoad("/pod/a", sim.Periodic(time.Second+30*ms, sim.Fixed(5*ms), 1))
	before := counters(t, tree, "/pod/a").Periods
	k.Advance(2050 * ms)
	if got := counters(t, tree, "/pod/a").Periods - before; got != 4 {
		t.Errorf("%d periods counted for two jobs, want two each", got)
	}
}

func TestPodAndContainerBothLimit(t *testing.T) {
	k, tree := machine(t, sim.Config{CPUs: 4, Version: 2})
	k.AddGroup("/pod/b")
	if err := errors.Join(tree.SetQuota("/pod", 50*ms), tree.SetQuota("/pod/a", 40*ms),
		tree.SetQuota("/pod/b", 40*ms)); err != nil {
		t.Fatal(err)
	}
	k.SetLoad("/pod/a", sim.Spin(1))
	k.SetLoad("/pod/b", sim.Spin(1))
	k.Advance(10 * time.Second)
	pod := counters(t, tree, "/pod")
	if pod.Usage < 4950*ms || pod.Usage > 5050*ms || pod.Throttled < 98 {
		t.Errorf("pod: %+v; want 5s and a throttle in each period", pod)
	}
	for _, p := range k.Periods("/pod") {
		if p.Used > 50*ms {
			t.Fatalf("the pod used %v in %+v", p.Used, p)
		}
	}
}

func TestCPUsAreShared(t *testing.T) {
	k := sim.New(sim.Config{CPUs: 2})
	for _, g := range []string{"/a", "/b", "/c"} {
		k.AddGroup(g)
	}
	k.SetLoad("/a", sim.Spin(1))
	k.SetLoad("/b", sim.Spin(2))
	k.SetLoad("/c", sim.OnOff(250*ms, 750*ms, 1))
	k.Advance(time.Second)
	// 250 ms with four threads on two CPUs, and 750 ms with three.
	for g, want := range map[string]time.Duration{"/a": 625 * ms, "/b": 1250 * ms, "/c": 125 * ms} {
		if got := k.Used(g); got < want-10 || got > want {
			t.Errorf("%s used %v, want %v", g, got, want)
		}
	}
	if k.Busy() < 2*time.Second-100 || k.Online() != 2 {
		t.Errorf("Busy = %v, Online = %d; want 2s, 2", k.Busy(), k.Online())
	}
}

func TestJobsWaitInLine(t *testing.T) {
	k := sim.New(sim.Config{CPUs: 4})
	k.AddGroup("/a")
	job := sim.Job{Cost: 10 * ms}
	late := sim.Job{At: 15 * ms, Cost: 10 * ms}
	k.SetLoad("/a", sim.Script(2, job, job, job, late))
	k.Advance(18 * ms)
	if n := k.Waiting("/a"); n != 2 {
		t.Errorf("%d jobs waiting, want 2", n)
	}
	k.Advance(82 * ms)
	var got []time.Duration
	for _, r := range k.Responses("/a") {
		got = append(got, r.Latency())
	}
	if diff := cmp.Diff([]time.Duration{10 * ms, 10 * ms, 20 * ms, 10 * ms}, got); diff != "" {
		t.Error(diff)
	}
}

func TestActionsAreDoneInTheirTime(t *testing.T) {
	k, tree := limited(t, 2, fifth)
	k.SetLoad("/pod/a", sim.Spin(1))
	start := k.Now()
	k.At(start.Add(50*ms), func() {
		if k.Now() != start.Add(50*ms) {
			t.Errorf("done at %v", k.Now().Sub(start))
		}
		if err := k.ForeignWrite("cpu/pod/a/cpu.cfs_quota_us", "30000"); err != nil {
			t.Error(err)
		}
	})
	k.At(start.Add(200*ms), func() { k.RemoveGroup("/pod/a") })
	k.Advance(100 * ms)
	if b, err := tree.Bandwidth("/pod/a"); b.Quota != 30*ms || err != nil || k.Used("/pod/a") != 50*ms {
		t.Errorf("after the foreign write: %+v, %v, used %v; want 50ms", b, err, k.Used("/pod/a"))
	}
	k.Advance(200 * ms)
	if k.Busy() != 80*ms {
		t.Errorf("the machine used %v, want nothing after the group's end", k.Busy())
	}
	if n := len(k.Periods("/pod/a")); n == 0 {
		t.Error("the truth about the removed group is lost")
	}
}

// crowd is a machine with n containers under mixed loads and limits, each with a pod.
func crowd(tb testing.TB, n int, seed uint64) (*sim.Kernel, *cgroup.Tree) {
	tb.Helper()
	k := sim.New(sim.Config{CPUs: 8, Version: 1, BurstFile: true, Seed: seed})
	tree, err := cgroup.Detect(k)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		pod := fmt.Sprintf("/pod%d", i)
		k.AddGroup(pod + "/c")
		quota := time.Duration(20+5*(i%7)) * ms
		if err := errors.Join(tree.SetQuota(pod, quota), tree.SetQuota(pod+"/c", quota),
			tree.SetBurst(pod+"/c", quota/2)); err != nil {
			tb.Fatal(err)
		}
		switch i % 4 {
		case 0:
			k.SetLoad(pod+"/c", sim.Spin(1+i%3))
		case 1, 2:
			k.SetLoad(pod+"/c", sim.Poisson(8, sim.Exponential(quota/4), 4))
		case 3:
			k.SetLoad(pod+"/c", sim.OnOff(130*ms, 400*ms, 2))
		}
	}
	return k, tree
}

// fingerprint is everything that the files and the truth say.
func fingerprint(t *testing.T, k *sim.Kernel, tree *cgroup.Tree) string {
	t.Helper()
	text := ""
	for _, g := range k.Groups() {
		text += fmt.Sprintf("%s %+v %v %d\n", g, counters(t, tree, g), k.Responses(g), len(k.Periods(g)))
	}
	return text
}

func TestSameSeedSameRun(t *testing.T) {
	var texts []string
	for _, seed := range []uint64{7, 7, 8} {
		k, tree := crowd(t, 12, seed)
		k.Advance(5 * time.Second)
		texts = append(texts, fingerprint(t, k, tree))
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
		t.Errorf("the same seed ran differently: %s", diff)
	}
	if texts[0] == texts[2] {
		t.Error("another seed ran the same")
	}
}

// One more group on a machine with idle CPUs changes nothing for the others.
func TestGroupsHaveTheirOwnChance(t *testing.T) {
	latencies := func(others int) []sim.Response {
		k := sim.New(sim.Config{CPUs: 8, Seed: 3})
		k.AddGroup("/a")
		k.SetLoad("/a", sim.Poisson(50, sim.Exponential(3*ms), 1))
		for i := range others {
			k.AddGroup(fmt.Sprint("/other", i))
			k.SetLoad(fmt.Sprint("/other", i), sim.Poisson(50, sim.Fixed(ms), 1))
		}
		k.Advance(time.Second)
		return k.Responses("/a")
	}
	if diff := cmp.Diff(latencies(0), latencies(3)); diff != "" {
		t.Error(diff)
	}
}

// Without a write in between, no group uses more in a period than its quota and burst, no group more than its pod
// allows, and the machine no more than its CPUs; what is used below is used above.
func TestInvariants(t *testing.T) {
	for seed := range uint64(20) {
		k, tree := crowd(t, 20, seed)
		for range 30 {
			k.Advance(97 * ms)
			for i := range 20 {
				pod := fmt.Sprintf("/pod%d", i)
				if a, b := k.Used(pod), k.Used(pod+"/c"); a != b {
					t.Fatalf("seed %d: %s used %v, its container %v", seed, pod, a, b)
				}
				c := counters(t, tree, pod+"/c")
				if c.Throttled > c.Periods || c.ThrottledTime > k.Throttled(pod+"/c") {
					t.Fatalf("seed %d: %s: %+v", seed, pod, c)
				}
			}
		}
		if total := k.Now().Sub(time.Unix(1_700_000_000, 0)) * 8; k.Busy() > total {
			t.Fatalf("seed %d: used %v of %v", seed, k.Busy(), total)
		}
		for _, g := range k.Groups() {
			for _, p := range k.Periods(g) {
				if p.Used > p.Bandwidth.Quota+p.Bandwidth.Burst {
					t.Fatalf("seed %d: %s used %v: %+v", seed, g, p.Used, p)
				}
			}
		}
	}
}

// BenchmarkMinute is a minute of 20 containers that are read ten times a second.
func BenchmarkMinute(b *testing.B) {
	for _, n := range []int{20, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				k, tree := crowd(b, n, 1)
				for range 600 {
					k.Advance(100 * ms)
					for i := range n {
						group := fmt.Sprintf("/pod%d/c", i)
						if _, err := tree.Counters(group); err != nil {
							b.Fatal(err)
						}
						if _, err := tree.Bandwidth(group); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
		})
	}
}
