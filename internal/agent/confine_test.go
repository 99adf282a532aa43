package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/policy"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// confined is a world whose offline work is bound to CPUs when the node's use is above the threshold.
func confined(t *testing.T, version int) *world {
	t.Helper()
	w := newShared(t, version, 4)
	w.agent.cpus.Rules = strategy.DefaultReserve()
	w.agent.colocation.Machine = policy.Machine{LeastWeight: 2}
	w.ask(strategy.MechanismWeight)
	on, cpuset := true, strategy.SuppressCPUSet
	w.agent.Configure(strategy.NodePatch{Colocation: strategy.ColocationPatch{
		Suppress: strategy.SuppressPatch{Enable: &on, Policy: &cpuset}}}.Over(w.agent.Strategy), nil)
	w.kernel.AddGroup("/batch")
	w.kernel.AddGroup("/batch/pod")
	if version == 2 { // where a group that inherits is bounded by its quota
		if err := w.kernel.ForeignWrite("batch/cpuset.cpus", "0-3"); err != nil {
			t.Fatal(err)
		}
	}
	for path, class := range map[string]workload.Class{"/web": workload.ClassLS, "/batch/pod/a": workload.ClassBE} {
		w.kernel.AddGroup(path)
		c := workload.Container{ID: w.id(path), Name: path, Runtime: "cgroup", Class: class,
			Strategy: w.agent.Strategy.Strategy, QOS: class.QOS(w.agent.Strategy.Colocation)}
		w.alone(c)
	}
	w.kernel.SetLoad("/web", sim.Spin(1))
	w.kernel.SetLoad("/batch/pod/a", sim.Spin(4))
	return w
}

func (w *world) cpus(group string) string {
	w.t.Helper()
	set, err := w.tree.CPUs(group)
	if err != nil {
		w.t.Fatal(err)
	}
	return set.String()
}

func (w *world) wantCPUs(what string, want map[string]string) {
	w.t.Helper()
	for group, cpus := range want {
		if got := w.cpus(group); got != cpus {
			w.t.Errorf("%s: %s has CPUs %q, want %q", what, group, got, cpus)
		}
	}
}

// TestConfine: offline work is bound to the CPUs that the threshold leaves, and what is made below it meanwhile with
// it; when online work leaves, the CPUs come back one after the other, and in the end everything is as before.
func TestConfine(t *testing.T) {
	for version, all := range map[int]string{1: "0-3", 2: ""} {
		w := confined(t, version)
		w.run(4 * time.Second)
		below := map[int]string{1: "3", 2: ""}[version]
		w.wantCPUs("bounded", map[string]string{"/web": all, "/batch": "3", "/batch/pod": below, "/batch/pod/a": below})
		w.kernel.AddGroup("/batch/pod/b") // which on v1 has what its parent has
		w.kernel.SetLoad("/web", sim.Load{})
		w.run(15 * time.Second)
		some := w.cpus("/batch")
		below = map[int]string{1: some, 2: ""}[version]
		if some != "2-3" {
			t.Errorf("v%d: with nobody online, 65 %% of 4 CPUs are %q", version, some)
		}
		w.wantCPUs("alone", map[string]string{"/batch/pod": below, "/batch/pod/a": below, "/batch/pod/b": below})
		w.kernel.SetLoad("/batch/pod/a", sim.Load{})
		free := map[string]string{"/batch": "0-3", "/batch/pod": all, "/batch/pod/a": all, "/batch/pod/b": all}
		for i := range 15 { // one of them comes just before the end
			name := fmt.Sprintf("/batch/pod/late%d", i)
			w.kernel.AddGroup(name)
			free[name] = all
			w.run(time.Second)
		}
		w.wantCPUs("not bounded", free)
		w.kernel.SetLoad("/batch/pod/a", sim.Spin(4))
		w.run(5 * time.Second)
		if w.cpus("/batch") == "0-3" {
			t.Errorf("v%d: not bounded again", version)
		}
		w.kernel.AddGroup("/batch/pod/c") // and nobody looks again
		if err := w.agent.stop(); err != nil {
			t.Fatal(err)
		}
		w.wantCPUs("stopped", map[string]string{"/batch": "0-3", "/batch/pod": all, "/batch/pod/a": all,
			"/batch/pod/b": all, "/batch/pod/c": all})
	}
}

// TestConfineInheritedLate: a group that copies CPUs of ours while those of the groups above it are being written gets
// the CPUs that these had before us.
func TestConfineInheritedLate(t *testing.T) {
	for _, file := range []string{"cpuset/batch/cpuset.cpus", "cpuset/batch/pod/cpuset.cpus"} {
		for _, idle := range []string{"/web", "/batch/pod/a"} { // the room grows, or it ends
			w := confined(t, 1)
			w.run(4 * time.Second)
			w.wantCPUs("bounded", map[string]string{"/batch/pod": "3"})
			made := false
			w.kernel.Fault = func(op, name string, _ []byte) error {
				if op == "write" && name == file && !made {
					made = true
					w.kernel.AddGroup("/batch/pod/late")
				}
				return nil
			}
			w.kernel.SetLoad(idle, sim.Load{})
			w.run(20 * time.Second)
			if !made {
				t.Fatalf("%s is not written", file)
			}
			if err := w.agent.stop(); err != nil {
				t.Error(err)
			}
			w.wantCPUs(idle+" is idle, write of "+file, map[string]string{"/batch": "0-3", "/batch/pod": "0-3",
				"/batch/pod/late": "0-3"})
		}
	}
}

// TestConfineWithinTheOwners: offline work is bound to CPUs that its owner gave it, also where those are not the last,
// and to none where one group below may use some and another one others.
func TestConfineWithinTheOwners(t *testing.T) {
	for version, dir := range map[int]string{1: "cpuset/", 2: ""} {
		for _, c := range []struct {
			batch, pod string
			quota      bool
		}{
			{batch: "1", pod: "1"},
			{batch: "0-3", pod: "0-1", quota: true},
		} {
			w := confined(t, version)
			for _, group := range []string{"batch/pod/a", "batch/pod"} { // on v1 from below
				if err := w.kernel.ForeignWrite(dir+group+"/cpuset.cpus", "0-1"); err != nil {
					t.Fatal(err)
				}
			}
			if c.quota {
				w.kernel.AddGroup("/batch/other")
				if err := w.kernel.ForeignWrite(dir+"batch/other/cpuset.cpus", "2-3"); err != nil {
					t.Fatal(err)
				}
			}
			if version == 2 {
				c.pod = "0-1"
			}
			w.run(4 * time.Second)
			w.wantCPUs("bounded", map[string]string{"/batch": c.batch, "/batch/pod": c.pod, "/batch/pod/a": c.pod})
			if b := w.kernel.Bandwidth("/batch"); b.Limited() != c.quota {
				t.Errorf("v%d: %+v, want a quota: %v", version, b, c.quota)
			}
			if err := w.agent.stop(); err != nil {
				t.Fatal(err)
			}
			w.wantCPUs("stopped", map[string]string{"/batch": "0-3", "/batch/pod": "0-1", "/batch/pod/a": "0-1"})
		}
	}
}

// TestConfineGone: what was known of the CPUs of a group goes with it, from the journal too.
func TestConfineGone(t *testing.T) {
	w := confined(t, 1)
	w.kernel.AddGroup("/batch/pod/b")
	w.run(4 * time.Second)
	w.wantCPUs("bounded", map[string]string{"/batch/pod/b": "3"})
	for _, group := range []string{"/batch/pod/b", "/batch/pod/a"} { // one that is listed, and one that is not
		w.kernel.RemoveGroup(group)
	}
	w.place.pods = w.place.pods[:0:0]
	w.run(4 * time.Second)
	for _, known := range w.knobs() {
		if strings.HasPrefix(known, "/batch/pod/") {
			t.Errorf("in the journal: %s", known)
		}
	}
}

// TestConfineBesideOthers: where containers may have exclusive CPUs, the bound is kept by quotas, and the status says
// why.
func TestConfineBesideOthers(t *testing.T) {
	for why, others := range map[string]func(*world){
		"containers may have exclusive CPUs": func(w *world) { w.agent.cpus.Rules.Policy = strategy.ReserveCPUSet },
		"the kubelet shares out CPUs": func(w *world) {
			w.agent.cpus.Owner = func() string { return "the kubelet shares out CPUs" }
		},
	} {
		w := confined(t, 1)
		others(w)
		w.run(4 * time.Second)
		w.wantCPUs(why, map[string]string{"/batch": "0-3"})
		if b := w.kernel.Bandwidth("/batch"); !b.Limited() {
			t.Errorf("%s: no quota either", why)
		}
		if got := w.agent.Status().Colocation.Why; !strings.HasSuffix(got, "by quotas, not by CPUs: "+why) {
			t.Errorf("%s: the status says %q", why, got)
		}
	}
}

// TestConfineLeavesFewer: on v1 another program may write a part of what we wrote. Those CPUs are not offline, so that
// its value stays.
func TestConfineLeavesFewer(t *testing.T) {
	w := confined(t, 1)
	w.kernel.SetLoad("/web", sim.Load{})
	w.run(5 * time.Second)
	w.wantCPUs("bounded", map[string]string{"/batch/pod/a": "2-3"})
	if err := w.kernel.ForeignWrite("cpuset/batch/pod/a/cpuset.cpus", "3"); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Second)
	w.wantCPUs("written", map[string]string{"/batch/pod/a": "3"})
	w.wantProblem("/batch/pod/a: cpus: another program set it to 3")
	if err := w.agent.stop(); err != nil {
		t.Fatal(err)
	}
	w.wantCPUs("stopped", map[string]string{"/batch": "0-3", "/batch/pod": "0-3", "/batch/pod/a": "3"})
}

// TestConfineOffIsolatedCPUs: offline work is bound neither to isolated CPUs nor to those of another's partition, which
// the root lacks. Where it has no others, it has quotas.
func TestConfineOffIsolatedCPUs(t *testing.T) {
	for _, c := range []struct {
		version   int
		isolated  cpu.Set
		partition bool
		want      string
	}{
		{1, cpu.Set{3}, false, "2"},
		{2, cpu.Set{3}, false, "2"},
		{2, nil, true, "2"},
		{2, cpu.Set{1, 2}, true, "0"},
		{1, cpu.Set{0, 1, 2, 3}, false, "0-3"},
	} {
		w := confined(t, c.version)
		w.agent.cpus.Isolated = c.isolated
		if c.partition {
			var err error
			if w.agent.cpus.Tree, err = cgroup.Detect(unplugged{w.kernel}); err != nil {
				t.Fatal(err)
			}
		}
		w.run(4 * time.Second)
		w.wantCPUs(fmt.Sprintf("%+v", c), map[string]string{"/batch": c.want})
		if b := w.kernel.Bandwidth("/batch"); b.Limited() != (c.want == "0-3") {
			t.Errorf("%+v: %+v", c, b)
		}
	}
}

// unplugged is a machine whose root lacks a CPU: package sim takes none offline.
type unplugged struct{ *sim.Kernel }

func (k unplugged) ReadFile(name string) ([]byte, error) {
	if name == "cpuset/cpuset.cpus" || name == "cpuset.cpus.effective" {
		return []byte("0-2\n"), nil
	}
	return k.Kernel.ReadFile(name)
}

// TestConfineShedsCPUs: on v1 the kernel takes a CPU that goes offline out of the lists. What is left is ours, and the
// owner's list comes back.
func TestConfineShedsCPUs(t *testing.T) {
	w := confined(t, 1)
	var err error
	if w.agent.colocation.Tree, err = cgroup.Detect(unplugged{w.kernel}); err != nil {
		t.Fatal(err)
	}
	w.kernel.SetLoad("/web", sim.Load{})
	w.run(5 * time.Second)
	for _, group := range []string{"/batch/pod/a", "/batch/pod", "/batch"} {
		if got := w.cpus(group); got != "2-3" {
			t.Fatalf("%s is bound to %q", group, got)
		}
		if err := w.kernel.ForeignWrite("cpuset"+group+"/cpuset.cpus", "2"); err != nil {
			t.Fatal(err)
		}
	}
	w.run(3 * time.Second)
	w.wantProblem("")
	w.kernel.SetLoad("/batch/pod/a", sim.Load{})
	w.run(15 * time.Second)
	w.wantCPUs("not bounded", map[string]string{"/batch": "0-3", "/batch/pod": "0-3", "/batch/pod/a": "0-3"})
}
