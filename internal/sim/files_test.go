package sim_test

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/sim"
)

const ms = time.Millisecond

var _ cgroup.FS = (*sim.Kernel)(nil)

// machine is a kernel of either version with a pod and a container in it.
func machine(t *testing.T, c sim.Config) (*sim.Kernel, *cgroup.Tree) {
	t.Helper()
	k := sim.New(c)
	k.AddGroup("/pod/a")
	tree, err := cgroup.Detect(k)
	if err != nil {
		t.Fatal(err)
	}
	return k, tree
}

func eachVersion(t *testing.T, test func(t *testing.T, k *sim.Kernel, tree *cgroup.Tree)) {
	t.Helper()
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			k, tree := machine(t, sim.Config{CPUs: 2, Version: version, BurstFile: true})
			test(t, k, tree)
		})
	}
}

func TestFreshGroupReadsAsTheKernels(t *testing.T) {
	eachVersion(t, func(t *testing.T, k *sim.Kernel, tree *cgroup.Tree) {
		b, err := tree.Bandwidth("/pod/a")
		want := cpu.Bandwidth{Quota: cpu.Unlimited, Period: 100 * ms}
		if err != nil || b != want {
			t.Errorf("Bandwidth = %+v, %v; want %+v", b, err, want)
		}
		c, err := tree.Counters("/pod/a")
		if err != nil || c != (cpu.Counters{HasUsage: true, HasBursts: true}) {
			t.Errorf("Counters = %+v, %v; want zeros", c, err)
		}
		if c, err := tree.Counters("/"); err != nil || !c.HasUsage {
			t.Errorf("root: Counters = %+v, %v; want a usage", c, err)
		}
		names, err := tree.Children("/")
		if diff := cmp.Diff([]string{"/pod"}, names); err != nil || diff != "" {
			t.Errorf("Children: %v %s", err, diff)
		}
		weight := map[cgroup.Version]int64{cgroup.V1: 1024, cgroup.V2: 100}[tree.Version()]
		if w, err := tree.Weight("/pod/a"); w != weight || err != nil {
			t.Errorf("Weight = %v, %v; want %v", w, err, weight)
		}
	})
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	eachVersion(t, func(t *testing.T, k *sim.Kernel, tree *cgroup.Tree) {
		if err := errors.Join(tree.SetQuota("/pod/a", 50*ms), tree.SetBurst("/pod/a", 20*ms)); err != nil {
			t.Fatal(err)
		}
		want := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms, Burst: 20 * ms}
		if b, err := tree.Bandwidth("/pod/a"); b != want || err != nil {
			t.Errorf("Bandwidth = %+v, %v; want %+v", b, err, want)
		}
		if err := tree.SetQuota("/pod/a", cpu.Unlimited); err != nil {
			t.Fatal(err)
		}
		want.Quota = cpu.Unlimited
		if b, err := tree.Bandwidth("/pod/a"); b != want || err != nil {
			t.Errorf("Bandwidth = %+v, %v; want %+v", b, err, want)
		}
	})
}

func TestTasks(t *testing.T) {
	eachVersion(t, func(t *testing.T, k *sim.Kernel, tree *cgroup.Tree) {
		populated := func(group string) bool {
			yes, err := tree.Populated(group)
			if err != nil {
				t.Fatal(err)
			}
			return yes
		}
		if populated("/pod/a") || populated("/pod") {
			t.Error("a fresh group is populated")
		}
		k.SetLoad("/pod/a", sim.Spin(3))
		if !populated("/pod/a") || !populated("/pod") {
			t.Error("a group with a load is not populated")
		}
		if pids, err := tree.Tasks("/pod/a"); len(pids) != 3 || err != nil {
			t.Errorf("Tasks = %v, %v; want 3", pids, err)
		}
	})
}

// The answers were recorded by hand on a 6.18 kernel; those of v2 on a 6.1 kernel.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		file, text string
		want       error
	}{
		{"cpu/pod/a/cpu.cfs_quota_us", "20001", syscall.EINVAL}, // above the pod's
		{"cpu/pod/a/cpu.cfs_quota_us", "20000", nil},
		{"cpu/pod/a/cpu.cfs_quota_us", "20000\n", nil},
		{"cpu/pod/a/cpu.cfs_quota_us", " 20000", syscall.EINVAL},
		{"cpu/pod/a/cpu.cfs_quota_us", "20000 ", syscall.EINVAL},
		{"cpu/pod/a/cpu.cfs_quota_us", "abc", syscall.EINVAL},
		{"cpu/pod/a/cpu.cfs_quota_us", "999", syscall.EINVAL},
		{"cpu/pod/a/cpu.cfs_quota_us", "1000", syscall.EINVAL}, // below its burst
		{"cpu/pod/a/cpu.cfs_quota_us", "-5", nil},
		{"cpu/pod/a/cpu.cfs_quota_us", "99999999999999999999", syscall.ERANGE},
		{"cpu/pod/a/cpu.cfs_period_us", "1000001", syscall.EINVAL},
		{"cpu/pod/a/cpu.cfs_burst_us", "10001", syscall.EINVAL}, // above its quota
		{"cpu/pod/a/cpu.cfs_burst_us", "-1", syscall.EINVAL},
		{"cpu/pod/cpu.cfs_quota_us", "9000", syscall.EINVAL}, // below the container's
		{"cpu/pod/cpu.cfs_quota_us", "10000", nil},
		{"cpu/cpu.cfs_quota_us", "10000", syscall.EINVAL}, // the root's
		{"cpu/pod/a/cpu.shares", "1", nil},
		{"cpu/pod/a/cpu.shares", "-1", syscall.EINVAL},
		{"cpu/pod/a/cpu.idle", "2", syscall.EINVAL},
		{"cpu/pod/a/cpu.stat", "0", syscall.EACCES},
		{"cpu/pod/a/cpu.max", "max", syscall.ENOENT},
		{"cpu/pod/b/cpu.shares", "2", syscall.ENOENT},
		{"cpu/pod/a", "2", syscall.EISDIR},
		{"pod/a/cpu.max", "5000", syscall.EINVAL}, // below its burst
		{"pod/a/cpu.max", "30000 100000\n", nil},  // above the pod's: no matter on v2
		{"pod/a/cpu.max", "30000", nil},
		{"pod/a/cpu.max", "max", nil},
		{"pod/a/cpu.max", "max 2000000", syscall.EINVAL},
		{"pod/a/cpu.max", "-1", syscall.EINVAL},
		{"pod/a/cpu.max", "", nil}, // a write of nothing does nothing
		{"pod/a/cpu.max.burst", "10001", syscall.EINVAL},
		{"pod/a/cpu.weight", "0", syscall.ERANGE},
		{"pod/a/cpu.weight", "10000", nil},
		{"pod/a/cpu.cfs_quota_us", "-1", syscall.ENOENT},
		{"cpu.max", "max", syscall.ENOENT}, // not on the root
	} {
		version := 2
		if len(c.file) > 3 && c.file[:4] == "cpu/" {
			version = 1
		}
		k, tree := machine(t, sim.Config{CPUs: 2, Version: version, BurstFile: true})
		if err := errors.Join(tree.SetQuota("/pod", 20*ms), tree.SetQuota("/pod/a", 10*ms),
			tree.SetBurst("/pod/a", 10*ms)); err != nil {
			t.Fatal(err)
		}
		err := k.WriteFile(c.file, []byte(c.text))
		if !errors.Is(err, c.want) {
			t.Errorf("%q to %s: %v, want %v", c.text, c.file, err, c.want)
		}
		var pe *fs.PathError
		if err != nil && (!errors.As(err, &pe) || pe.Path != c.file) {
			t.Errorf("%q to %s: %#v is no PathError of it", c.text, c.file, err)
		}
		log := k.Writes()
		if last := log[len(log)-1]; last.Name != c.file || last.Data != c.text || (last.Err == nil) != (err == nil) {
			t.Errorf("%q to %s: logged as %+v", c.text, c.file, last)
		}
	}
}

// cpu.idle locks the weight, and the former weight is lost.
func TestIdleLosesTheWeight(t *testing.T) {
	eachVersion(t, func(t *testing.T, k *sim.Kernel, tree *cgroup.Tree) {
		if err := errors.Join(tree.SetWeight("/pod", 300), tree.SetIdle("/pod", true)); err != nil {
			t.Fatal(err)
		}
		if err := tree.SetWeight("/pod", 300); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("weight of an idle group: %v, want EINVAL", err)
		}
		idle := map[cgroup.Version]int64{cgroup.V1: 3, cgroup.V2: 0}[tree.Version()]
		if w, err := tree.Weight("/pod"); w != idle || err != nil {
			t.Errorf("idle: weight = %d, %v; want %d", w, err, idle)
		}
		if err := tree.SetIdle("/pod", false); err != nil {
			t.Fatal(err)
		}
		if w, err := tree.Weight("/pod"); w == 300 || err != nil {
			t.Errorf("no longer idle: weight = %d, %v; want the default", w, err)
		}
	})
}

func TestMissingFeatures(t *testing.T) {
	k, tree := machine(t, sim.Config{Version: 1})
	if _, err := tree.Burst("/pod"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no burst file: %v, want ENOENT", err)
	}
	if err := k.Rmdir("cpuacct/pod/a"); err != nil {
		t.Fatal(err)
	}
	if c, err := tree.Counters("/pod/a"); err != nil || c.HasUsage || c.HasBursts {
		t.Errorf("no cpuacct, no burst: Counters = %+v, %v", c, err)
	}
	_, tree = machine(t, sim.Config{Version: 1, BurstFile: true, NoBurstCounters: true, BurstAboveQuota: true})
	if c, err := tree.Counters("/pod"); err != nil || c.HasBursts {
		t.Errorf("no burst counters: Counters = %+v, %v", c, err)
	}
	if err := errors.Join(tree.SetQuota("/pod", 10*ms), tree.SetBurst("/pod", 100*ms)); err != nil {
		t.Errorf("burst above quota where it is allowed: %v", err)
	}
	k, tree = machine(t, sim.Config{Version: 2, BurstFile: true, DividesBurst: true})
	if err := errors.Join(tree.SetQuota("/pod", 10*ms), tree.SetBurst("/pod", 10*ms),
		k.WriteFile("pod/cpu.max", []byte("20000"))); err != nil {
		t.Fatal(err)
	}
	if burst, err := tree.Burst("/pod"); burst != 10*time.Microsecond || err != nil {
		t.Errorf("a kernel that divides the burst: %v, %v; want 10us", burst, err)
	}
}

func TestARecreatedGroupIsAnotherOne(t *testing.T) {
	eachVersion(t, func(t *testing.T, k *sim.Kernel, tree *cgroup.Tree) {
		inode := func(group string) uint64 {
			n, err := tree.Inode(group)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := inode("/pod/a")
		if inode("/pod/a") != before {
			t.Error("the inode changes by itself")
		}
		k.RemoveGroup("/pod")
		if _, err := tree.Bandwidth("/pod/a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a removed group: %v, want ENOENT", err)
		}
		k.AddGroup("/pod/a")
		if inode("/pod/a") == before {
			t.Error("the recreated group has the old inode")
		}
	})
}

func TestMkdirAndRmdir(t *testing.T) {
	k := sim.New(sim.Config{Version: 1})
	steps := []struct {
		do   func(string) error
		name string
		want error
	}{
		{k.Mkdir, "cpuacct/x", syscall.ENOENT},
		{k.Mkdir, "cpu/x", nil},
		{k.Mkdir, "cpu/x", syscall.EEXIST},
		{k.Rmdir, "cpuacct/x", syscall.ENOENT},
		{k.Mkdir, "cpuacct/x", nil},
		{k.Mkdir, "cpu/x/y", nil},
		{k.Mkdir, "cpu/no/y", syscall.ENOENT},
		{k.Rmdir, "cpu/x", syscall.EBUSY},
		{k.Rmdir, "cpu/x/cpu.stat", syscall.ENOTDIR},
		{k.Rmdir, "cpu/x/y", nil},
		{k.Rmdir, "cpuacct/x", nil},
		{k.Rmdir, "cpu/x", nil},
		{k.Rmdir, "cpu", syscall.EBUSY},
	}
	for _, s := range steps {
		if err := s.do(s.name); !errors.Is(err, s.want) {
			t.Errorf("%s: %v, want %v", s.name, err, s.want)
		}
	}
}

func TestFault(t *testing.T) {
	k, tree := machine(t, sim.Config{Version: 2})
	var asked []string
	crash := errors.New("crash")
	k.Fault = func(op, name string, data []byte) error {
		asked = append(asked, fmt.Sprintf("%s %s %q", op, name, data))
		switch {
		case op == "write" && name == "pod/a/cpu.max":
			return crash
		case op == "write":
			return k.ForeignWrite(name, "12345 100000") // trampled: then ours goes through
		case name == "pod/cpu.stat":
			return syscall.ENODEV
		}
		return nil
	}
	if err := k.WriteFile("pod/a/cpu.max", []byte("20000")); !errors.Is(err, crash) {
		t.Errorf("write: %v, want the fault", err)
	}
	if _, err := tree.Counters("/pod"); !errors.Is(err, syscall.ENODEV) {
		t.Errorf("read: %v, want the fault", err)
	}
	if err := k.WriteFile("pod/cpu.max", []byte("20000")); err != nil {
		t.Error(err)
	}
	want := []string{`write pod/a/cpu.max "20000"`, `read pod/cpu.stat ""`, `write pod/cpu.max "20000"`}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
	if b := k.Bandwidth("/pod/a"); b.Limited() {
		t.Errorf("the faulty write was done: %+v", b)
	}
	log := k.Writes()
	if len(log) != 3 || log[0].Err == nil || !log[1].Foreign || log[1].Data != "12345 100000" || log[2].Foreign {
		t.Errorf("writes are logged as %+v", log)
	}
}

// TestMovedTasks: a group of the cpuset hierarchy keeps a CPU for tasks that were moved into it, and needs none when
// they were moved out of it.
func TestMovedTasks(t *testing.T) {
	k, tree := machine(t, sim.Config{Version: 1, CPUs: 2, CPUSets: true})
	k.SetTasks("/pod/a", 1)
	tids, err := tree.CPUSetThreads("/pod/a")
	if err = errors.Join(err, k.Mkdir("cpuset/shield")); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string, want error) {
		t.Helper()
		if err := k.WriteFile(name, []byte(text)); !errors.Is(err, want) {
			t.Errorf("%q to %s: %v, want %v", text, name, err, want)
		}
	}
	write("cpuset/pod/a/cpuset.cpus", "\n", syscall.ENOSPC)
	write("cpuset/shield/cpuset.cpus", "0", nil)
	write("cpuset/shield/cpuset.cpus", "\n", nil)
	write("cpuset/shield/cpuset.cpus", "0", nil)
	write("cpuset/shield/tasks", fmt.Sprint(tids[0]), nil)
	write("cpuset/shield/cpuset.cpus", "\n", syscall.ENOSPC)
	write("cpuset/pod/a/cpuset.cpus", "\n", nil)
}
