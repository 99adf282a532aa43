package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
)

// reserved is a pod with one container that requests an exclusive CPU, and one that does not, each with a process.
type reserved struct {
	t        *testing.T
	pod      *cgrouptest.Group
	a, b     *cgrouptest.Group
	inA, inB *cgrouptest.Process
	online   cpu.Set
}

func newReserved(t *testing.T, s *shipped) *reserved {
	t.Helper()
	r := &reserved{t: t, pod: cgrouptest.New(t)}
	r.pod.Bindable()
	r.a, r.b = r.child("a"), r.child("b")
	r.a.Limit(50 * ms)
	r.inA, r.inB = r.a.Idle(), r.b.Idle()
	var err error
	if r.online, err = r.inB.Affinity(); err != nil || len(r.online) < 2 {
		t.Fatalf("%v: it takes two CPUs, and there is %s", err, r.online)
	}
	s.write(fmt.Sprintf("reserve: {policy: auto}\noverrides:\n  - {cgroup: %q, exclusive: strict, request: 1}\n  - "+
		"{cgroup: %q}\n", r.a.Path, r.b.Path))
	return r
}

func (r *reserved) child(name string) *cgrouptest.Group {
	r.t.Helper()
	c := r.pod.Child(name)
	c.Bindable()
	return c
}

// files are all that may be written, byte by byte.
func (r *reserved) files() map[string]string {
	r.t.Helper()
	texts := files(r.t, r.pod, r.a, r.b)
	for _, g := range []*cgrouptest.Group{r.pod, r.a, r.b} {
		for _, f := range []string{"cpuset.cpus", "cpuset.cpus.exclusive", "cpuset.cpus.partition",
			"cgroup.subtree_control"} {
			at := g.File(f)
			if g.Tree().Version() == cgroup.V1 {
				at = cgrouptest.Root() + "/cpuset" + g.Path + "/" + f
			}
			if data, err := os.ReadFile(at); err == nil {
				texts[at] = string(data)
			}
		}
	}
	return texts
}

// exclusive waits until the process in a has one CPU, and another process all others.
func (r *reserved) exclusive(other *cgrouptest.Process) {
	r.t.Helper()
	eventually(r.t, patience(5*time.Second), func() string {
		a, err1 := r.inA.Affinity()
		b, err2 := other.Affinity()
		quota, _ := bandwidthNow(r.t, r.a)
		if err1 != nil || err2 != nil || len(a) != 1 || !b.Equal(r.online.Minus(a)) || quota != cpu.Unlimited {
			return fmt.Sprintf("%v %v: a runs on %s with a quota of %v, the other on %s", err1, err2, a, quota, b)
		}
		return ""
	})
}

// partition waits until the kernel calls the container a partition, where there are such.
func (r *reserved) partition(s *shipped) {
	r.t.Helper()
	data, err := os.ReadFile(r.a.File("cpuset.cpus.exclusive"))
	if err != nil {
		if r.pod.Tree().Version() == cgroup.V2 && cgrouptest.AtLeast(cgrouptest.Release(r.t), "6.7") {
			r.t.Error(err)
		}
		return
	}
	eventually(r.t, patience(5*time.Second), func() string {
		kind, invalid, err := r.a.Tree().Partition(r.a.Path)
		own := s.status().Reserve.Exclusive
		if kind != "root" || invalid != "" || len(own) != 1 || !own[0].Partition {
			return fmt.Sprintf("%q %q %v, exclusive %q; %+v", kind, invalid, err, data, own)
		}
		return ""
	})
}

func (r *reserved) back(before map[string]string) {
	r.t.Helper()
	eventually(r.t, patience(5*time.Second), func() string { return cmp.Diff(before, r.files()) })
	if b, err := r.inA.Affinity(); err != nil || !b.Equal(r.online) {
		r.t.Errorf("%v: a process still runs on %s only", err, b)
	}
}

// TestRunReserves: processes are bound as the reservation says, those of a new group at once, and after a crash and
// after an orderly end all files are what they were.
func TestRunReserves(t *testing.T) {
	s := newShipped(t)
	s.flags = []string{"--poll"} // turns give CPUs, and no event of a throttle
	r := newReserved(t, s)
	before := r.files()
	agent := s.start()
	r.exclusive(r.inB)
	fresh := r.child("c")
	r.exclusive(fresh.Idle())
	if got := s.status().Reserve; got == nil || len(got.Exclusive) != 1 || got.Exclusive[0].Cgroup != r.a.Path ||
		!got.Exclusive[0].Unlimited {
		t.Errorf("status: %+v", got)
	}
	r.partition(s)
	agent.stop(syscall.SIGKILL)
	r.exclusive(r.inB) // no process is left to restore anything
	s.unlocked("restore")
	r.back(before)
	if p := fresh.Idle(); p != nil {
		if got, err := p.Affinity(); err != nil || !got.Equal(r.online) {
			t.Errorf("%v: a group that was made meanwhile runs on %s", err, got)
		}
	}
	agent = s.start()
	r.exclusive(r.inB)
	if emulated() && r.pod.Tree().Version() == cgroup.V2 { // on v1 the pod would lose the CPU for good
		r.offline()
	}
	agent.stop(syscall.SIGTERM)
	r.back(before)
}

// offline takes a CPU offline, so that none is left to be given, and brings it back online. This is done in virtual
// machines only.
func (r *reserved) offline() {
	r.t.Helper()
	name := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", r.online[len(r.online)-1])
	if err := os.WriteFile(name, []byte("0"), 0o600); err != nil {
		r.t.Logf("CPUs cannot be taken away here: %v", err)
		return
	}
	rest := r.online[:len(r.online)-1]
	eventually(r.t, patience(10*time.Second), func() string {
		a, err1 := r.inA.Affinity()
		b, err2 := r.inB.Affinity()
		if !a.Equal(rest) || !b.Equal(rest) {
			return fmt.Sprintf("%v %v: a runs on %s, the other on %s, and only %s are online", err1, err2, a, b, rest)
		}
		return ""
	})
	if err := os.WriteFile(name, []byte("1"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.exclusive(r.inB)
}

// TestRunReservesBesidePartition: CPUs that another program has made a partition of are left alone, and are not for
// the share pool. From 6.7 the partition's group need not have a list of CPUs that would show them.
func TestRunReservesBesidePartition(t *testing.T) {
	s := newShipped(t)
	s.flags = []string{"--poll"}
	r := newReserved(t, s)
	tree := r.pod.Tree()
	if tree.Version() == cgroup.V1 || !cgrouptest.AtLeast(cgrouptest.Release(t), "6.7") {
		cgrouptest.Elsewhere(t, "test/vm/matrix.sh on 6.12:v2 and 6.18:v2",
			"a partition has a list of CPUs here, which shows its CPUs")
	}
	if handed, err := tree.CPUSetsEnabled("/"); err != nil || !handed {
		if err := errors.Join(err, tree.EnableCPUSets("/", true)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := tree.EnableCPUSets("/", false); err != nil {
				t.Error(err)
			}
		})
	}
	other := cgrouptest.New(t)
	if err := tree.SetExclusiveCPUs(other.Path, r.online[len(r.online)-1:]); err != nil {
		t.Fatal(err)
	}
	if err := tree.SetPartition(other.Path, "root"); err != nil {
		t.Fatal(err)
	}
	agent := s.start()
	if why := "1 is isolated or in another's partition"; !agent.says(why) {
		t.Errorf("the agent does not say %q", why)
	}
	agent.stop(syscall.SIGTERM)
	if kind, invalid, err := tree.Partition(other.Path); kind != "root" || invalid != "" || err != nil {
		t.Errorf("the partition is %q %q now, %v", kind, invalid, err)
	}
}
