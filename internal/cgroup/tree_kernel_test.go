package cgroup_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
)

const ms = time.Millisecond

// eventually waits for something that the kernel does in its own time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * ms) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func bandwidth(t *testing.T, g *cgrouptest.Group) cpu.Bandwidth {
	t.Helper()
	b, err := g.Tree().Bandwidth(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// limitWithPeriod writes a limit as an owner does.
func limitWithPeriod(t *testing.T, g *cgrouptest.Group, quota, period time.Duration) {
	t.Helper()
	files := map[string]string{"cpu.max": fmt.Sprint(quota.Microseconds(), " ", period.Microseconds())}
	if g.Tree().Version() == cgroup.V1 {
		files = map[string]string{"cpu.cfs_period_us": fmt.Sprint(period.Microseconds()),
			"cpu.cfs_quota_us": fmt.Sprint(quota.Microseconds())}
	}
	for name, text := range files {
		if err := g.Dir().WriteFile(path.Join(g.Tree().Dir(g.Path), name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKernelBandwidth(t *testing.T) {
	g := cgrouptest.New(t)
	if got, want := bandwidth(t, g), (cpu.Bandwidth{Quota: cpu.Unlimited, Period: 100 * ms}); got != want {
		t.Errorf("a new group has %v, want %v", got, want)
	}
	for _, quota := range []time.Duration{ms, 50 * ms, 3 * time.Second, cpu.Unlimited, 1234567 * time.Microsecond} {
		if err := g.Tree().SetQuota(g.Path, quota); err != nil {
			t.Errorf("quota %v: %v", quota, err)
		}
		if got := bandwidth(t, g); got.Quota != quota || got.Period != 100*ms {
			t.Errorf("wrote %v, read %v", quota, got)
		}
	}
	limitWithPeriod(t, g, 50*ms, 250*ms)
	if err := g.Tree().SetQuota(g.Path, 60*ms); err != nil ||
		bandwidth(t, g) != (cpu.Bandwidth{Quota: 60 * ms, Period: 250 * ms}) {
		t.Errorf("the quota alone was written, and there is %v (%v)", bandwidth(t, g), err)
	}
	// tg_set_cfs_bandwidth, min_cfs_quota_period
	if err := g.Tree().SetQuota(g.Path, 999*time.Microsecond); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a quota below 1 ms: %v", err)
	}
}

func TestKernelTreeBurst(t *testing.T) {
	g := cgrouptest.New(t)
	found := g.Features()
	cgrouptest.Need(t, found.Get(cgroup.FeatureBurst))
	g.Limit(50 * ms)
	tree := g.Tree()
	if err := tree.SetBurst(g.Path, 50*ms); err != nil {
		t.Fatal(err)
	}
	err := tree.SetBurst(g.Path, 51*ms)
	if above := found.Has(cgroup.FeatureAboveQuota); (err == nil) != above {
		t.Errorf("a burst above the quota: %v, but the probe said %v", err, above)
	}
	if err := tree.SetBurst(g.Path, 50*ms); err != nil {
		t.Fatal(err)
	}
	if !found.Has(cgroup.FeatureAboveQuota) {
		if err := tree.SetQuota(g.Path, 40*ms); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("a quota below the burst: %v", err)
		}
	}
	if err := tree.SetQuota(g.Path, 80*ms); err != nil {
		t.Fatal(err)
	}
	if got, want := bandwidth(t, g), (cpu.Bandwidth{Quota: 80 * ms, Period: 100 * ms, Burst: 50 * ms}); got != want {
		t.Errorf("in force %v, want %v", got, want)
	}
}

func TestKernelThrottle(t *testing.T) {
	g := cgrouptest.New(t)
	g.Limit(5 * ms)
	g.Spin(1)
	var c cpu.Counters
	// A period counts at its end, the time only when the throttle ends: after what was used too much is paid off.
	eventually(t, "three throttled periods and their time are counted", func() bool {
		var err error
		if c, err = g.Tree().Counters(g.Path); err != nil {
			t.Fatal(err)
		}
		return c.Throttled >= 3 && c.ThrottledTime > 0
	})
	if c.Periods < c.Throttled {
		t.Errorf("counters %+v", c)
	}
	if !c.HasUsage || c.Usage <= 0 {
		t.Errorf("no use is counted: %+v", c)
	}
	if node, err := g.Tree().Usage("/"); err != nil || node < c.Usage {
		t.Errorf("the node has used %v, a group of it %v: %v", node, c.Usage, err)
	}
	if tasks, err := g.Tree().Tasks(g.Path); err != nil || len(tasks) != 1 {
		t.Errorf("tasks %v, %v", tasks, err)
	}
}

// A group without a limit, in a pod that has one: the kernel counts the pod as throttled, and not the container.
func TestKernelThrottledByParent(t *testing.T) {
	pod := cgrouptest.New(t)
	container := pod.Child("container")
	pod.Limit(5 * ms)
	container.Spin(1)
	eventually(t, "the pod's throttling is counted", func() bool {
		c, err := pod.Tree().Counters(pod.Path)
		return err == nil && c.ThrottledTime > 0
	})
	c, err := pod.Tree().Counters(container.Path)
	if err != nil || c.ThrottledTime != 0 || c.Throttled != 0 {
		t.Errorf("the container is counted as throttled: %+v, %v", c, err)
	}
}

func TestKernelTreeIdle(t *testing.T) {
	g := cgrouptest.New(t)
	cgrouptest.Need(t, g.Features().Get(cgroup.FeatureIdle))
	tree := g.Tree()
	if err := tree.SetWeight(g.Path, 500); err != nil {
		t.Fatal(err)
	}
	if err := tree.SetIdle(g.Path, true); err != nil {
		t.Fatal(err)
	}
	if idle, err := tree.Idle(g.Path); err != nil || !idle {
		t.Errorf("idle %v, %v", idle, err)
	}
	if w, err := tree.Weight(g.Path); err != nil || w > 3 {
		t.Errorf("weight of an idle group %d, %v", w, err)
	}
	if err := tree.SetWeight(g.Path, 500); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("writing the weight of an idle group: %v", err)
	}
	if err := tree.SetIdle(g.Path, false); err != nil {
		t.Fatal(err)
	}
	if w, err := tree.Weight(g.Path); err != nil || w == 500 {
		t.Errorf("the weight was to be lost, but is %d, %v", w, err)
	}
}

func TestKernelPopulated(t *testing.T) {
	pod := cgrouptest.New(t)
	container := pod.Child("container")
	populated := func() bool {
		got, err := pod.Tree().Populated(pod.Path)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if populated() {
		t.Error("a new group is populated")
	}
	p := container.Idle()
	eventually(t, "the process is seen", populated)
	p.Stop()
	eventually(t, "its end is seen", func() bool { return !populated() })
	if got, err := pod.Tree().Children(pod.Path); err != nil || len(got) != 1 || got[0] != container.Path {
		t.Errorf("children %v, %v", got, err)
	}
}

// A group that is removed and made again is another one, also where the old one's files are still open.
func TestKernelRecreated(t *testing.T) {
	g := cgrouptest.New(t)
	tree, dir := g.Tree(), g.Dir()
	g.Limit(50 * ms)
	before := bandwidth(t, g)
	id, err := tree.Inode(g.Path)
	if err != nil || before.Quota != 50*ms {
		t.Fatal(before, err)
	}
	// Behind the back of the Dir, which would forget the files otherwise.
	if err := os.Remove(path.Dir(g.File("cpu.stat"))); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Bandwidth(g.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading a group that is gone: %v", err)
	}
	if err := tree.SetQuota(g.Path, ms); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("writing a group that is gone: %v", err)
	}
	if err := dir.Mkdir(tree.Dir(g.Path)); err != nil {
		t.Fatal(err)
	}
	if got := bandwidth(t, g); got.Limited() {
		t.Errorf("the new group reads as the old: %v", got)
	}
	if again, err := tree.Inode(g.Path); err != nil || again == id {
		t.Errorf("inode %d, was %d, %v", again, id, err)
	}
}

func openFiles(t *testing.T, below string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, below) {
			n++
		}
	}
	return n
}

func TestKernelOpenFiles(t *testing.T) {
	g := cgrouptest.New(t)
	root, tree := path.Dir(g.File("cpu.stat")), g.Tree()
	for range 3 {
		bandwidth(t, g)
		if _, err := tree.Stat(g.Path); err != nil {
			t.Fatal(err)
		}
		if _, err := tree.Tasks(g.Path); err != nil {
			t.Fatal(err)
		}
	}
	if n := openFiles(t, root); n < 2 || n > 4 {
		t.Errorf("%d files are open", n)
	}
	tree.Forget(g.Path)
	if n := openFiles(t, root); n != 0 {
		t.Errorf("%d files are open of a group that is forgotten", n)
	}
	bandwidth(t, g)
	if err := g.Dir().Close(); err != nil || openFiles(t, root) != 0 {
		t.Errorf("files stay open: %v", err)
	}
}

// Several goroutines read more files than may be kept open, while others forget them.
func TestKernelOpenFilesAreFew(t *testing.T) {
	g := cgrouptest.New(t)
	dir := cgroup.NewDirOf(path.Dir(g.File("cpu.stat")), 2)
	defer dir.Close()
	names := []string{"cpu.stat", "cgroup.clone_children", "notify_on_release", "cpu.shares"}
	if g.Tree().Version() == cgroup.V2 {
		names = []string{"cpu.stat", "cpu.max", "cpu.weight", "cgroup.events"}
	}
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range 500 {
				if data, err := dir.ReadFile(names[(n+i)%len(names)]); err != nil || len(data) == 0 {
					t.Errorf("%q, %v", data, err)
				}
				if i%50 == 0 {
					_ = dir.Close() // it stays usable
				}
			}
		})
	}
	wg.Wait()
	for _, name := range names {
		if _, err := dir.ReadFile(name); err != nil {
			t.Error(err)
		}
	}
	if n := openFiles(t, dir.Root()); n != 2 {
		t.Errorf("%d files are open, where 2 may be", n)
	}
}

func TestKernelProbe(t *testing.T) {
	g := cgrouptest.New(t)
	found := g.Features()
	for _, name := range []string{cgroup.FeatureVersion, cgroup.FeatureController, cgroup.FeatureWritable,
		cgroup.FeatureBandwidth, cgroup.FeatureUsage, cgroup.FeatureInotify} {
		if f := found.Get(name); f.State != cgroup.Yes {
			t.Errorf("%+v", f)
		}
	}
	for _, f := range found {
		if f.State == cgroup.Unknown && f.Name != cgroup.FeatureRefill && f.Name != cgroup.FeaturePartition {
			t.Errorf("the kernel's tests do not know: %+v", f)
		}
		t.Logf("%-22s %-8s %s", f.Name, f.State, f.Detail)
	}
	// Each mainline kernel refills at an unchanged write (tg_set_cfs_bandwidth).
	// A machine too busy to try it may not know.
	if f := found.Get(cgroup.FeatureRefill); f.State == cgroup.No {
		t.Errorf("%+v", f)
	}
	groups, err := g.Tree().Children("/")
	if err != nil {
		t.Fatal(err)
	}
	ours := fmt.Sprintf("/plimsoll-probe-%d", os.Getpid()) // agents beside have theirs
	if slices.Contains(groups, ours) {
		t.Errorf("%s stays behind", ours)
	}
}

func BenchmarkDirReadFile(b *testing.B) {
	g := cgrouptest.New(b)
	name := path.Join(g.Tree().Dir(g.Path), "cpu.stat")
	for b.Loop() {
		if _, err := g.Dir().ReadFile(name); err != nil {
			b.Fatal(err)
		}
	}
}
