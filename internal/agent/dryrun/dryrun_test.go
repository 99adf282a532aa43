package dryrun

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/agent"
	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/pauses"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// runs is what runs on a simulated machine.
type runs struct {
	*sim.Kernel
	pods []workload.Pod
}

func (r *runs) Pods() ([]workload.Pod, error)         { return r.pods, nil }
func (r *runs) Touched() []string                     { return nil }
func (r *runs) Wake() <-chan struct{}                 { return nil }
func (r *runs) Counts() (rescans, lost int64)         { return 0, 0 }
func (r *runs) Online() (int, error)                  { return r.Kernel.Online(), nil }
func (r *runs) Busy() (time.Duration, error)          { return r.Kernel.Busy(), nil }
func (r *runs) Threads([]int) map[int]time.Duration   { return nil }
func (r *runs) Self() (used time.Duration, rss int64) { return 0, 0 }
func (r *runs) Hold(string, time.Time) error          { return nil }
func (r *runs) Resume() error                         { return nil }
func (r *runs) Why() (string, time.Time)              { return "", time.Time{} }
func (r *runs) Held() bool                            { return false }
func planned(t *testing.T, o agent.Options, left []journal.Entry, p strategy.Policy) map[string]string {
	t.Helper()
	o.Discover = &Discoverer{Discoverer: o.Discover, Policy: p}
	changes, err := Collect(t.Context(), o, left, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range changes {
		got[c.Cgroup.Path+" "+string(c.Knob)] = string(c.From) + " -> " + string(c.To)
	}
	return got
}

// TestDryRunOfAnotherPolicy: the changes of another policy are listed apart from the writes of the running agent, and
// nothing is written.
func TestDryRunOfAnotherPolicy(t *testing.T) {
	k := sim.New(sim.Config{CPUs: 4, Version: 1, BurstFile: true, Seed: 1})
	tree, err := cgroup.Detect(k)
	if err != nil {
		t.Fatal(err)
	}
	r := &runs{Kernel: k}
	for _, name := range []string{"/web", "/batch"} {
		k.AddGroup(name)
		if err := k.ForeignWrite("cpu"+name+"/cpu.cfs_quota_us", "50000"); err != nil {
			t.Fatal(err)
		}
		k.SetTasks(name, 1)
		inode, err := tree.Inode(name)
		if err != nil {
			t.Fatal(err)
		}
		c := workload.Container{ID: workload.ID{Path: name, Inode: inode}, Name: name, Runtime: "cgroup",
			Strategy: strategy.Default()}
		c.Strategy.Policy = strategy.CPUBurstOnly
		if name == "/batch" {
			c.Strategy.Policy, c.Class = strategy.None, workload.ClassBE
		}
		r.pods = append(r.pods, workload.Pod{Containers: []workload.Container{c}})
	}
	j, err := journal.OpenDisk(journal.NewMemory(), "boot", k.Now)
	if err != nil {
		t.Fatal(err)
	}
	w := apply.New(tree, j, k.Now)
	a := agent.New(agent.Options{Tree: tree, Discover: r, Host: r, Writer: w, Switch: r, Pauses: pauses.New(""),
		Clock: time.Now,
		Log:   slog.New(slog.DiscardHandler), Rules: policy.Rules{Burst: true,
			Nested: true}, Strategy: strategy.Node{Strategy: strategy.Strategy{SharePoolThresholdPercent: 100}}})
	rehearsed := func(p strategy.Policy) map[string]string {
		o := a.DryRunOptions()
		o.Tree, o.Host, o.Log = tree, r, slog.New(slog.DiscardHandler)
		return planned(t, o, j.Entries(), p)
	}
	burst := map[string]string{"/web burst": "0s -> 50ms"}
	if diff := cmp.Diff(burst, rehearsed("")); diff != "" {
		t.Errorf("as configured, before anything is written: %s", diff)
	}
	a.Tick(time.Now())
	want := cpu.Bandwidth{Quota: 50 * time.Millisecond, Period: 100 * time.Millisecond, Burst: 50 * time.Millisecond}
	if got := k.Bandwidth("/web"); got != want {
		t.Fatalf("the agent wrote %v", got)
	}
	for p, plan := range map[strategy.Policy]map[string]string{"": {}, strategy.Auto: {},
		strategy.None: {"/web burst": "50ms -> 0s"}} {
		if diff := cmp.Diff(plan, rehearsed(p)); diff != "" {
			t.Errorf("policy %q: %s", p, diff)
		}
	}
	if got := k.Bandwidth("/web"); got != want {
		t.Errorf("a dry run wrote %v", got)
	}
	raise := plan.Change{Cgroup: r.pods[0].Containers[0].ID, Knob: plan.Quota, From: "50ms", To: "90ms", Min: "50ms",
		Max: "90ms"}
	if results := w.Do([]plan.Change{raise}); results[0].Outcome != plan.Applied {
		t.Fatalf("%+v", results)
	}
	back := map[string]string{"/web burst": "50ms -> 0s", "/web quota": "90ms -> 50ms"}
	if diff := cmp.Diff(back, rehearsed(strategy.None)); diff != "" {
		t.Errorf("beside a raised quota: %s", diff)
	}
}
