package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// succeed ends the agent of a world, and starts another one on what it left.
func (w *world) succeed(passed bool) {
	w.t.Helper()
	w.agent.Successor = func() bool { return passed }
	if err := w.agent.stop(); err != nil {
		w.t.Fatal(err)
	}
	w.inherit(func(entries []journal.Entry) { w.agent.Adopt(entries) })
}

// kill starts another agent on what this one leaves that is killed.
func (w *world) kill() {
	w.t.Helper()
	w.inherit(func(entries []journal.Entry) { w.agent.Recovered(entries, w.agent.Writer.Restore(nil, false)) })
}

// inherit makes an agent, which begins with the entries of the journal.
func (w *world) inherit(begin func(entries []journal.Entry)) {
	w.t.Helper()
	j, err := journal.OpenDisk(w.disk, "boot", w.kernel.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	o := w.agent.Options
	o.Writer, o.Successor = apply.New(w.tree, j, w.kernel.Now), nil
	w.agent = New(o)
	begin(j.Entries())
}

// two is a world with a container that is throttled and one that rests, both with what the agent gives them.
func two(t *testing.T) *world {
	w := newWorld(t)
	w.hog("/busy")
	w.alone(w.container("/calm", 50*ms, sim.Periodic(time.Second, sim.Fixed(10*ms), 1)))
	w.run(2 * time.Second)
	w.wantRaised("/busy", 50*ms)
	w.want("/calm", 50*ms, 50*ms)
	return w
}

func TestSuccessorKeepsBurstsAndLowersQuotas(t *testing.T) {
	w := two(t)
	burst := w.kernel.Bandwidth("/busy").Burst
	w.succeed(true)
	w.want("/calm", 50*ms, 50*ms)
	w.want("/busy", 50*ms, burst)
	writes := len(w.kernel.Writes())
	w.run(2 * time.Second)
	for _, x := range w.kernel.Writes()[writes:] {
		if x.Group.Path == "/calm" {
			t.Errorf("written anew: %+v", x)
		}
	}
	w.wantRaised("/busy", 50*ms)
	if c := w.status("/calm"); !c.Burst.Changed || c.Burst.Original != 0 {
		t.Errorf("the status does not know whose burst it is: %+v", c.Burst)
	}
	w.succeed(false)
	w.want("/calm", 50*ms, 0)
	w.want("/busy", 50*ms, 0)
}

// TestSuccessorKnowsTheValueBeforeARefusedOne: the journal has the value that the kernel refused last, and the file the
// one before. That is the old agent's too, and goes where the others go.
func TestSuccessorKnowsTheValueBeforeARefusedOne(t *testing.T) {
	w := two(t)
	j, err := journal.OpenDisk(w.disk, "boot", w.kernel.Now) // as the agent's own, which writes no more
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Intend(w.id("/calm"), plan.Burst, plan.Time(40*ms)); err != nil {
		t.Fatal(err)
	}
	w.succeed(true)
	w.run(2 * time.Second)
	if c := w.status("/calm"); !c.Burst.Changed || c.Burst.Original != 0 || c.Burst.Problem != "" {
		t.Errorf("the status does not know whose burst it is: %+v", c.Burst)
	}
	for i := range w.place.pods {
		w.place.pods[i].Containers[0].Strategy.Policy = strategy.None
	}
	w.run(time.Second)
	w.want("/calm", 50*ms, 0)
}

func TestSuccessorTakesBackWhatItsPolicyDoesNotWant(t *testing.T) {
	w := two(t)
	w.succeed(true)
	for i := range w.place.pods {
		w.place.pods[i].Containers[0].Strategy.Policy = strategy.None
	}
	w.run(time.Second)
	w.want("/calm", 50*ms, 0)
	w.want("/busy", 50*ms, 0)
}

// TestSuccessorRetriesARefusedRestore: a quota that the kernel does not let it put back at once, beside a burst of the
// agent before, is not another program's.
func TestSuccessorRetriesARefusedRestore(t *testing.T) {
	for name, begin := range map[string]func(*world){
		"handed over": func(w *world) { w.inherit(func(entries []journal.Entry) { w.agent.Adopt(entries) }) },
		"killed":      (*world).kill,
	} {
		t.Run(name, func(t *testing.T) { retriesARefusedRestore(t, begin) })
	}
}

func retriesARefusedRestore(t *testing.T, begin func(*world)) {
	w := newWorld(t)
	w.alone(w.container("/a", 50*ms, sim.Periodic(time.Second, sim.Fixed(10*ms), 1)))
	j, err := journal.OpenDisk(w.disk, "boot", w.kernel.Now)
	if err != nil {
		t.Fatal(err)
	}
	quota := journal.Entry{ID: w.id("/a"), Knob: plan.Quota, Original: "50ms", Min: "50ms", Max: "80ms"}
	burst := journal.Entry{ID: quota.ID, Knob: plan.Burst, Original: "0s", Min: "0s", Max: "50ms", Quota: "50ms"}
	if err := errors.Join(j.Claim(quota, burst), j.Intend(quota.ID, quota.Knob, "80ms")); err != nil {
		t.Fatal(err)
	}
	w.limit("/a", 80*ms)
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if op == "write" && name == "cpu/a/cpu.cfs_quota_us" {
			return syscall.EBUSY
		}
		return nil
	}
	begin(w)
	w.want("/a", 80*ms, 0)
	w.kernel.Fault = nil
	w.run(20 * time.Second)
	w.want("/a", 50*ms, 50*ms)
	w.wantProblem("")
}

// TestSuccessorRetriesOtherKnobs: a file that neither colocation nor exclusive CPUs manage any more is restored also
// where the kernel refuses that at first, although the agent manages the group.
func TestSuccessorRetriesOtherKnobs(t *testing.T) {
	for name, begin := range map[string]func(*world){
		"handed over": func(w *world) { w.inherit(func(entries []journal.Entry) { w.agent.Adopt(entries) }) },
		"killed":      (*world).kill,
	} {
		for knob, c := range map[plan.Knob]struct{ file, original, ours string }{
			plan.Idle: {"cpu.idle", "0", "1"},
			plan.CPUs: {"cpuset.cpus", "0-3", "2-3"},
		} {
			t.Run(name+" "+string(knob), func(t *testing.T) {
				w := newShared(t, 2, 4)
				w.alone(w.container("/a", 50*ms, sim.Periodic(time.Second, sim.Fixed(10*ms), 1)))
				w.own(knob, c.file, plan.Value(c.original), plan.Value(c.ours))
				w.kernel.Fault = func(op, name string, _ []byte) error {
					if op == "write" && name == "a/"+c.file {
						return syscall.EBUSY
					}
					return nil
				}
				begin(w)
				w.run(time.Second)
				w.wantProblem(fmt.Sprintf("/a: its %s is not restored", knob))
				w.kernel.Fault = nil
				w.run(31 * time.Second)
				w.wantProblem("")
				if held, err := apply.Read(w.tree, "/a", knob); err != nil || string(held) != c.original {
					t.Errorf("%s, %v, want %s", held, err, c.original)
				}
				if left := w.knobs(); slices.Contains(left, "/a "+string(knob)) {
					t.Errorf("in the journal: %v", left)
				}
			})
		}
	}
}

// TestSuccessorGoesOn: a file that was not restored and is to hold the same value for the next agent is no problem.
func TestSuccessorGoesOn(t *testing.T) {
	w := colocated(t, strategy.MechanismIdle, "/web", "/batch")
	w.run(2 * time.Second)
	w.wantFile("/batch/cpu.idle", "1")
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if op == "write" && name == "cpu/batch/cpu.idle" {
			return syscall.EBUSY
		}
		return nil
	}
	machine := w.agent.colocation.Machine
	w.kill()
	w.agent.colocation.Machine = machine
	w.kernel.Fault = nil
	writes := len(w.kernel.Writes())
	w.run(5 * time.Second)
	w.wantProblem("")
	w.wantFile("/batch/cpu.idle", "1")
	for _, x := range w.kernel.Writes()[writes:] {
		if strings.HasSuffix(x.Name, "cpu.idle") {
			t.Errorf("written anew: %+v", x)
		}
	}
	w.ask(strategy.MechanismNone)
	w.run(4 * time.Second)
	w.wantProblem("")
	w.wantFile("/batch/cpu.idle", "0")
	w.wantFile("/batch/cpu.shares", "1024")
}

// own has a file of /a hold a value of the agent before, as its journal tells.
func (w *world) own(knob plan.Knob, file string, original, ours plan.Value) {
	w.t.Helper()
	e := journal.Entry{ID: w.id("/a"), Knob: knob, Original: original, Min: original, Max: ours}
	weight := journal.Entry{ID: e.ID, Knob: plan.Weight, Original: "100", Min: "100", Max: "100"} // which idle replaces
	j, err := journal.OpenDisk(w.disk, "boot", w.kernel.Now)
	if err == nil {
		err = errors.Join(j.Claim(e, weight), j.Intend(e.ID, knob, ours),
			w.kernel.ForeignWrite("a/"+file, string(ours)))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestSuccessorPutsBackWhatIsNotItsToLookAfter(t *testing.T) {
	w := two(t)
	w.succeed(true)
	w.place.pods = nil
	w.run(time.Second)
	w.want("/calm", 50*ms, 0)
	w.want("/busy", 50*ms, 0)
}

// TestSuccessorWaitsForTheDiscovery: as long as that fails, nothing tells which groups are not to be looked after.
func TestSuccessorWaitsForTheDiscovery(t *testing.T) {
	w := two(t)
	pods := w.place.pods
	w.place.pods, w.place.err = nil, errors.New("no")
	w.succeed(true)
	w.run(2 * time.Second)
	w.want("/calm", 50*ms, 50*ms)
	w.place.pods, w.place.err = pods[1:], nil
	w.run(2 * time.Second)
	w.want("/calm", 50*ms, 50*ms)
	w.want("/busy", 50*ms, 0) // nobody's any more
}

func TestRetiredAgentWritesNoMore(t *testing.T) {
	w := two(t)
	if _, err := w.agent.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want("/calm", 50*ms, 0)
	w.want("/busy", 50*ms, 0)
	w.run(2 * time.Second)
	w.want("/busy", 50*ms, 0)
	if w.lever.held {
		t.Error("the next agent is held too")
	}
	if err := w.agent.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.run(2 * time.Second)
	w.wantRaised("/busy", 50*ms)
}

// TestNothingIsWrittenAfterTheEnd: the control socket and the container runtime outlive the loop, and may ask for a
// turn when everything has been put back.
func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	w := two(t)
	if err := w.agent.stop(); err != nil {
		t.Fatal(err)
	}
	writes := w.ours()
	w.kernel.Advance(100 * ms)
	if err := w.agent.Pause(t.Context(), "/calm", time.Millisecond); err != nil {
		t.Fatal(err)
	}
	w.run(2 * time.Second)
	if err := w.agent.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.run(2 * time.Second)
	if n := w.ours() - writes; n != 0 {
		t.Errorf("%d writes", n)
	}
	w.want("/busy", 50*ms, 0)
	w.want("/calm", 50*ms, 0)
}

// TestDryRunTakesNothingOfTheAgent: a dry run takes no finding from the agent beside it, and reports nothing in its
// place.
func TestDryRunTakesNothingOfTheAgent(t *testing.T) {
	w := newWorld(t)
	w.hog("/a")
	w.agent.Strategy.Extra.PerNode = strategy.Bound{Set: true, CPUs: 0.2}
	var shared []string
	w.agent.Undone = func() ([]apply.Undone, error) { shared = append(shared, "undone"); return nil, nil }
	w.agent.Bounded = func(string, string) { shared = append(shared, "bounded") }
	w.agent.Refillable = func(_, _ []workload.ID) { shared = append(shared, "refillable") }
	w.agent.Schedulers = &loader{}
	o := w.agent.DryRunOptions()
	if o.Schedulers != nil || o.Refillable != nil {
		t.Error("a dry run has the agent's schedulers, or names its groups")
	}
	o.Tree, o.Host, o.Log = w.tree, w.host, w.agent.Log
	dry := New(o)
	for range 30 {
		dry.Plan(w.kernel.Now())
		w.kernel.Advance(100 * ms)
	}
	if len(shared) > 0 {
		t.Errorf("a dry run took or reported in the agent's place: %q", shared)
	}
	w.run(3 * time.Second)
	if !slices.Contains(shared, "undone") || !slices.Contains(shared, "bounded") {
		t.Errorf("the agent itself: %q: the scenario proves nothing", shared)
	}
}

// TestRaisedIsScaled: a raised group whose period the kernel scales stays the agent's, and has the owner's share of a
// CPU when the agent ends, whether its limit is declared or not.
func TestRaisedIsScaled(t *testing.T) {
	for _, declared := range []*workload.Declared{nil,
		{Source: "a test", Bandwidth: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}}} {
		w := newWorld(t)
		w.hog("/busy")
		w.place.pods[0].Containers[0].Declared = declared
		w.run(2 * time.Second)
		w.wantRaised("/busy", 50*ms)
		w.kernel.Scale("/busy")
		w.run(40 * time.Second)
		w.wantRaised("/busy", 100*ms)
		w.wantProblem("")
		if c := w.status("/busy"); c.Limit != 100*ms || c.Quota.Original != 100*ms || c.Quota.Problem != "" {
			t.Errorf("limit %v, %+v", c.Limit, c.Quota)
		}
		if err := w.agent.stop(); err != nil {
			t.Fatal(err)
		}
		if b := w.kernel.Bandwidth("/busy"); b.Quota != 100*ms || b.Period != 200*ms || b.Burst != 0 {
			t.Errorf("declared %v: restored %+v", declared != nil, b)
		}
	}
}
