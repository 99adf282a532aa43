package agent

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/policy"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// colocated is a world with an online and an offline container, and the mechanism that is asked for.
func colocated(t *testing.T, m strategy.Mechanism, online, offline string) *world {
	t.Helper()
	w := newWorld(t)
	w.agent.colocation.Machine = policy.Machine{Idle: true, LeastWeight: 2}
	w.ask(m)
	w.classed(online, workload.ClassLS)
	w.classed(offline, workload.ClassBE)
	return w
}

func (w *world) ask(m strategy.Mechanism) {
	on := true
	w.agent.Configure(strategy.NodePatch{Colocation: strategy.ColocationPatch{Enable: &on,
		Mechanism: &m}}.Over(w.agent.Strategy), nil)
}

func (w *world) classed(path string, class workload.Class) {
	w.t.Helper()
	c := w.container(path, 400*ms, sim.Spin(1))
	c.Class, c.Strategy = class, w.agent.Strategy.Strategy
	c.QOS = class.QOS(w.agent.Strategy.Colocation)
	w.alone(c)
	w.place.pods = append([]workload.Pod(nil), w.place.pods...) // another snapshot
}

func (w *world) wantFile(name, want string) {
	w.t.Helper()
	got, err := w.kernel.ReadFile("cpu" + name)
	if err != nil || strings.TrimSpace(string(got)) != want {
		w.t.Errorf("%s holds %s (%v), want %s", name, strings.TrimSpace(string(got)), err, want)
	}
}

func TestPreferIdle(t *testing.T) {
	w := colocated(t, strategy.MechanismAuto, "/web", "/batch")
	if err := w.kernel.ForeignWrite("cpu/batch/cpu.shares", "512"); err != nil {
		t.Fatal(err)
	}
	w.run(2 * time.Second)
	w.wantFile("/batch/cpu.idle", "1")
	w.wantFile("/web/cpu.idle", "0")
	c := w.agent.Status().Colocation
	if c == nil || c.Mechanism != strategy.MechanismIdle || !c.InForce() || len(c.Knobs) != 1 {
		t.Fatalf("status %+v", c)
	}
	for _, r := range c.Ranks {
		want := map[strategy.Rank]int{strategy.Online: 1, strategy.Offline: 1}[r.Rank]
		if r.Containers != want || want == 1 && (r.Used < 0.5 || r.Usage < time.Second) {
			t.Errorf("%+v, want %d container that uses one CPU", r, want)
		}
	}
	w.ask(strategy.MechanismNone)
	w.run(2 * time.Second)
	w.wantFile("/batch/cpu.idle", "0")
	w.wantFile("/batch/cpu.shares", "512")
	if c := w.agent.Status().Colocation; c != nil {
		t.Errorf("status %+v after none", c)
	}
}

func TestPreferWeight(t *testing.T) {
	w := colocated(t, strategy.MechanismWeight, "/web", "/batch")
	w.run(2 * time.Second)
	w.wantFile("/batch/cpu.shares", "2")
	w.wantFile("/batch/cpu.idle", "0")
	if err := w.agent.stop(); err != nil {
		t.Fatal(err)
	}
	w.wantFile("/batch/cpu.shares", "1024")
}

// TestPreferChangesMechanism: the knob of one is put back, and that of the other set.
func TestPreferChangesMechanism(t *testing.T) {
	w := colocated(t, strategy.MechanismWeight, "/web", "/batch")
	w.run(2 * time.Second)
	w.ask(strategy.MechanismIdle)
	w.run(4 * time.Second)
	w.wantFile("/batch/cpu.idle", "1")
	w.ask(strategy.MechanismWeight)
	w.run(4 * time.Second)
	w.wantFile("/batch/cpu.idle", "0")
	w.wantFile("/batch/cpu.shares", "2")
	if err := w.agent.stop(); err != nil {
		t.Fatal(err)
	}
	w.wantFile("/batch/cpu.shares", "1024")
}

// TestPreferGone: a group above containers leaves the journal when it is gone, with the weight that cpu.idle replaces.
func TestPreferGone(t *testing.T) {
	w := colocated(t, strategy.MechanismIdle, "/web", "/batch/a")
	w.run(2 * time.Second)
	if got, want := w.knobs(), []string{"/batch idle", "/batch weight"}; !slices.Equal(got, want) {
		t.Fatalf("in the journal: %v, want %v", got, want)
	}
	w.kernel.RemoveGroup("/batch")
	w.place.pods = w.place.pods[:1:1]
	w.run(5 * time.Second)
	if left := w.knobs(); len(left) > 0 {
		t.Errorf("in the journal: %v", left)
	}
}

// TestPreferUnread: a file that cannot be read for a while holds our value still, and that is not its owner's.
func TestPreferUnread(t *testing.T) {
	w := colocated(t, strategy.MechanismWeight, "/web", "/batch")
	w.run(2 * time.Second)
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if op == "read" && name == "cpu/batch/cpu.shares" {
			return syscall.EIO
		}
		return nil
	}
	w.run(3 * time.Second)
	w.wantProblem("/batch: weight: cannot be read")
	w.kernel.Fault = nil
	w.run(2 * time.Second)
	w.wantProblem("")
	w.ask(strategy.MechanismNone)
	w.run(4 * time.Second)
	w.wantFile("/batch/cpu.shares", "1024")
}

// TestPreferForgetsWhatIsGone: with a group goes what is known of its files,
// and another one of its name is looked at anew.
func TestPreferForgetsWhatIsGone(t *testing.T) {
	w := colocated(t, strategy.MechanismWeight, "/web", "/batch")
	w.run(2 * time.Second)
	w.kernel.RemoveGroup("/batch")
	w.place.pods = w.place.pods[:1:1]
	w.run(2 * time.Second)
	if s, left := w.agent.Status(), w.knobs(); len(s.Colocation.Knobs)+len(left) > 0 {
		t.Errorf("%+v, in the journal %v", s.Colocation.Knobs, left)
	}
	w.classed("/batch", workload.ClassBE)
	w.run(2 * time.Second)
	w.wantFile("/batch/cpu.shares", "2")
}

// TestPreferPutsBackAfterARefusal: without waiting for the end, and says so until then.
func TestPreferPutsBackAfterARefusal(t *testing.T) {
	w := colocated(t, strategy.MechanismWeight, "/web", "/batch")
	w.run(2 * time.Second)
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if op == "write" && strings.HasPrefix(name, "cpu/batch/") {
			return syscall.EINVAL
		}
		return nil
	}
	w.ask(strategy.MechanismNone)
	w.run(5 * time.Second)
	w.wantFile("/batch/cpu.shares", "2")
	w.wantProblem("/batch")
	w.kernel.Fault = nil
	w.run(10 * time.Second)
	w.wantFile("/batch/cpu.shares", "1024")
	w.wantProblem("")
	if c := w.agent.Status().Colocation; c != nil {
		t.Errorf("status %+v", c)
	}
}

// TestPreferFollowsAnOwner: systemd writes idle back to 0 before it writes a weight.
func TestPreferFollowsAnOwner(t *testing.T) {
	w := colocated(t, strategy.MechanismIdle, "/web", "/batch")
	w.run(2 * time.Second)
	if err := w.kernel.ForeignWrite("cpu/batch/cpu.idle", "0"); err != nil {
		t.Fatal(err)
	}
	w.run(4 * time.Second)
	w.wantFile("/batch/cpu.idle", "1")
	if c := w.agent.Status().Colocation; c.Knobs[0].Resets != 1 || !c.InForce() {
		t.Errorf("%+v", c.Knobs)
	}
}

// TestPreferKeepsTheOwnersWeight: an owner who clears idle and writes another weight, as systemd does, finds that
// weight in the end, and not the one before.
func TestPreferKeepsTheOwnersWeight(t *testing.T) {
	w := colocated(t, strategy.MechanismIdle, "/web", "/batch")
	w.run(2 * time.Second)
	for _, write := range [][2]string{{"cpu.idle", "0"}, {"cpu.shares", "700"}} {
		if err := w.kernel.ForeignWrite("cpu/batch/"+write[0], write[1]); err != nil {
			t.Fatal(err)
		}
	}
	w.run(4 * time.Second)
	w.wantFile("/batch/cpu.idle", "1")
	if err := w.agent.stop(); err != nil {
		t.Fatal(err)
	}
	w.wantFile("/batch/cpu.shares", "700")
}

// TestPreferFollowsAResize: an offline pod that the kubelet may resize is not idle, as it could not write the pod's
// weight then. What it writes is overwritten after a while, and stands in the end.
func TestPreferFollowsAResize(t *testing.T) {
	const pod = "/kubepods/burstable/pod2"
	w := colocated(t, strategy.MechanismIdle, "/kubepods/burstable/pod1/c", pod+"/c")
	w.run(2 * time.Second)
	w.wantFile(pod+"/cpu.idle", "0")
	w.wantFile(pod+"/cpu.shares", "2")
	w.file(pod, "cpu.shares", "700")
	w.run(4 * time.Second)
	w.wantFile(pod+"/cpu.shares", "2")
	w.wantProblem("")
	if err := w.agent.stop(); err != nil {
		t.Fatal(err)
	}
	w.wantFile(pod+"/cpu.shares", "700")
}

// TestUnclassifiedIsNoLevel: a group in which somebody runs whom nobody gave a class is no level, and one that has
// just come is waited for.
func TestUnclassifiedIsNoLevel(t *testing.T) {
	w := colocated(t, strategy.MechanismIdle, "/web", "/slice/batch")
	w.kernel.AddGroup("/slice/sshd")
	w.kernel.SetLoad("/slice/sshd", sim.Spin(1))
	w.kernel.Advance(ms) // the load begins
	w.run(ms)
	w.wantFile("/slice/cpu.idle", "0")
	w.wantFile("/slice/batch/cpu.idle", "1")

	w = colocated(t, strategy.MechanismIdle, "/web", "/slice/batch")
	w.run(2 * time.Second)
	w.wantFile("/slice/cpu.idle", "1")
	w.kernel.AddGroup("/slice/pod")
	w.kernel.SetLoad("/slice/pod", sim.Spin(1))
	w.run(2 * time.Second)
	w.wantFile("/slice/cpu.idle", "1")
	w.run(5 * time.Second)
	w.wantFile("/slice/cpu.idle", "0")
	w.wantFile("/slice/batch/cpu.idle", "1")
}

// TestPreferSparesTheGuard: what offline work uses is there for the asking while its mechanism is in force, by idle and
// by weight.
func TestPreferSparesTheGuard(t *testing.T) {
	for m, want := range map[strategy.Mechanism]float64{strategy.MechanismNone: 2, strategy.MechanismIdle: 1,
		strategy.MechanismWeight: 1} {
		w := colocated(t, m, "/web", "/batch")
		w.run(3 * time.Second)
		if used := w.agent.Status().Node.Used; used < want-0.2 || used > want+0.2 {
			t.Errorf("%s: the share pool uses %.2f CPUs, want %.0f", m, used, want)
		}
	}
}

// TestPreferExposedToTheGuard: what offline work uses is no less in the way of online work that does not stand beside
// it, but of a scheduler of ours.
func TestPreferExposedToTheGuard(t *testing.T) {
	for m, want := range map[strategy.Mechanism]float64{strategy.MechanismIdle: 3, strategy.MechanismWeight: 3,
		strategy.MechanismSchedExt: 2} {
		w := colocated(t, m, "/web", "/slice/batch")
		w.agent.scheduler.Loader = &loader{usable: true}
		w.classed("/slice/api", workload.ClassLS)
		w.run(3 * time.Second)
		c := w.agent.Status().Colocation
		if used := w.agent.Status().Node.Used; c.Mechanism != m || !slices.Equal(c.Exposed, []string{"/slice/batch"}) ||
			used < want-0.2 || used > want+0.2 {
			t.Errorf("%s: the share pool uses %.2f CPUs, want %.0f (%+v)", m, used, want, c)
		}
	}
}

// TestPreferUnderHold: with the kill switch everything is put back and nothing written.
func TestPreferUnderHold(t *testing.T) {
	w := colocated(t, strategy.MechanismIdle, "/web", "/batch")
	w.run(2 * time.Second)
	if _, err := w.agent.Hold(t.Context(), true, "test"); err != nil {
		t.Fatal(err)
	}
	w.run(3 * time.Second)
	w.wantFile("/batch/cpu.idle", "0")
	if err := w.agent.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.run(3 * time.Second)
	w.wantFile("/batch/cpu.idle", "1")
	if c := w.agent.Status().Colocation; c.Knobs[0].Resets != 0 {
		t.Errorf("our own restore counts as the owner's: %+v", c.Knobs)
	}
}

// TestSuppressTakesTheOwnersBurst: the kernel refuses a quota below it. It comes back when the quota goes,
// and at the end.
func TestSuppressTakesTheOwnersBurst(t *testing.T) {
	w := colocated(t, strategy.MechanismIdle, "/web", "/batch")
	w.kernel.SetLoad("/batch", sim.Spin(4))
	if err := w.kernel.ForeignWrite("cpu/batch/cpu.cfs_burst_us", "400000"); err != nil {
		t.Fatal(err)
	}
	w.suppress()
	bounded := func() {
		t.Helper()
		w.run(5 * time.Second)
		if b := w.kernel.Bandwidth("/batch"); b.Quota > 200*ms || b.Burst != 0 {
			t.Errorf("bounded: %+v", b)
		}
	}
	bounded()
	if c := w.agent.Status().Colocation; !c.InForce() {
		t.Errorf("not in force: %+v", c.Knobs)
	}
	w.kernel.SetLoad("/batch", sim.Load{})
	w.run(15 * time.Second)
	w.want("/batch", 400*ms, 400*ms)
	w.kernel.SetLoad("/batch", sim.Spin(4))
	bounded()
	if err := w.agent.stop(); err != nil {
		t.Fatal(err)
	}
	w.want("/batch", 400*ms, 400*ms)
	for _, x := range w.kernel.Writes() {
		if x.Err != nil {
			t.Errorf("refused: %+v", x)
		}
	}
}

// TestSuppress: what offline work may use is bounded to what the threshold leaves, at once, and given back when it
// wants less. That its quota moves is nobody's resize.
func TestSuppress(t *testing.T) {
	w := colocated(t, strategy.MechanismIdle, "/web", "/batch")
	w.kernel.SetLoad("/batch", sim.Spin(4))
	w.run(2 * time.Second)
	w.want("/batch", 400*ms, 0)
	w.suppress()
	w.run(5 * time.Second)
	const room = 172 * ms // per 100 ms: 65 % of four CPUs less what /web gets, which is a little below one
	if got := w.kernel.Bandwidth("/batch").Quota; got < room-10*ms || got > room+10*ms {
		t.Errorf("quota %v, want %v", got, room)
	}
	w.wantFile("/batch/cpu.idle", "1")
	before := w.ours()
	w.run(10 * time.Second)
	if n := w.ours() - before; n > 3 {
		t.Errorf("%d writes in 10 s in which nothing changed", n)
	}
	w.kernel.SetLoad("/web", sim.Spin(2))
	w.run(2 * time.Second)
	if got := w.kernel.Bandwidth("/batch").Quota; got > room-40*ms {
		t.Errorf("quota %v after more online work came", got)
	}
	w.kernel.SetLoad("/batch", sim.Load{})
	w.run(15 * time.Second)
	w.want("/batch", 400*ms, 0)
	w.kernel.SetLoad("/batch", sim.Spin(4))
	w.run(5 * time.Second)
	if err := w.agent.stop(); err != nil {
		t.Fatal(err)
	}
	w.want("/batch", 400*ms, 0)
}
