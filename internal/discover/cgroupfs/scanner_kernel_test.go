package cgroupfs

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/config"
	"plimsoll/internal/workload"
)

// soon is the bound of the issue: a container is noticed within 200 ms of its limit being written.
const soon = 200 * time.Millisecond

// lab is a group of the real kernel with groups below it, by their path in it.
type lab struct {
	t      *testing.T
	tree   *cgroup.Tree
	path   string
	groups map[string]*cgrouptest.Group
}

func newLab(t *testing.T) *lab {
	t.Helper()
	g := cgrouptest.New(t)
	return &lab{t: t, tree: g.Tree(), path: g.Path, groups: map[string]*cgrouptest.Group{".": g}}
}

func (l *lab) mkdir(name string) {
	l.t.Helper()
	l.groups[name] = l.groups[path.Dir(name)].Child(path.Base(name))
}

func (l *lab) rmdir(name string) {
	l.t.Helper()
	l.groups[name].Remove()
}

// write writes as any other program would: past the files that a cgroup.Dir keeps open.
func (l *lab) write(name, file, text string) {
	l.t.Helper()
	f, err := os.OpenFile(l.groups[name].File(file), os.O_WRONLY, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		l.t.Fatal(err)
	}
}

// quota writes a quota of the default period, as an engine would.
func (l *lab) quota(name string, quota time.Duration) (file string) {
	l.t.Helper()
	us := strconv.FormatInt(quota.Microseconds(), 10)
	if l.tree.Version() == cgroup.V2 {
		l.write(name, "cpu.max", us+" 100000")
		return "cpu.max"
	}
	l.write(name, "cpu.cfs_quota_us", us)
	return "cpu.cfs_quota_us"
}

// run starts a Scanner that manages the lab's groups of two levels.
func (l *lab) run() *Scanner {
	l.t.Helper()
	f, err := config.FromFlags("auto", []string{l.path + "/*", l.path + "/*/*"})
	if err != nil {
		l.t.Fatal(err)
	}
	s, err := New(l.tree, cgrouptest.Root(), Options{Resolver: f, Every: time.Hour})
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(l.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	l.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Error(err)
		}
	})
	s.Events()
	return s
}

// expect waits for an event and fails if it comes late.
func (l *lab) expect(s *Scanner, kind EventKind, name, file string) {
	l.t.Helper()
	start := time.Now()
	limit := time.After(5 * time.Second)
	for {
		for _, e := range s.Events() {
			if e.Kind == kind && e.Path == l.path+name && e.File == file {
				// no time is kept in a VM
				if late := time.Since(start); late > soon && os.Getenv("PLIMSOLL_EMULATED") == "" {
					l.t.Errorf("%s %s%s came after %v", kind, name, file, late)
				}
				return
			}
		}
		select {
		case <-s.Wake():
		case <-limit:
			l.t.Fatalf("no %s of %s %s", kind, name, file)
		}
	}
}

// pods are those of the lab: the machine may have others.
func (l *lab) pods(s *Scanner) []workload.Pod {
	l.t.Helper()
	pods, err := s.Pods()
	if err != nil {
		l.t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(pods), func(p workload.Pod) bool {
		return !strings.HasPrefix(p.Path+p.Containers[0].Path, l.path+"/")
	})
}

// watches counts what inotify really watches of the lab.
func (l *lab) watches(s *Scanner) int {
	n := 0
	for _, dir := range s.watcher.(*fsnotify.Watcher).WatchList() {
		if strings.HasPrefix(dir, l.groups["."].File("")) {
			n++
		}
	}
	return n
}

func TestNoticesWhatIsWritten(t *testing.T) {
	l := newLab(t)
	s := l.run()
	l.mkdir("pod")
	l.expect(s, Appeared, "/pod", "")
	l.mkdir("pod/c1")
	l.expect(s, Appeared, "/pod/c1", "")
	pods := l.pods(s)
	if len(pods) != 1 || pods[0].Path != l.path+"/pod" || len(pods[0].Containers) != 1 {
		t.Fatalf("pods: %+v", pods)
	}
	c := pods[0].Containers[0]
	if inode, err := l.tree.Inode(c.Path); err != nil || inode != c.Inode || c.Path != l.path+"/pod/c1" {
		t.Errorf("container %+v: inode %d, %v", c, inode, err)
	}

	file := l.quota("pod/c1", 50*time.Millisecond)
	l.expect(s, Written, "/pod/c1", file)
	l.quota("pod/c1", 50*time.Millisecond) // the same value
	l.expect(s, Written, "/pod/c1", file)
	l.quota("pod", 90*time.Millisecond)
	l.expect(s, Written, "/pod", file)
	burst := "cpu.max.burst"
	if l.tree.Version() == cgroup.V1 {
		burst = "cpu.cfs_burst_us"
		l.write("pod/c1", "cpu.cfs_period_us", "200000")
		l.expect(s, Written, "/pod/c1", "cpu.cfs_period_us")
	}
	if _, err := os.Stat(l.groups["pod/c1"].File(burst)); err == nil ||
		cgrouptest.AtLeast(cgrouptest.Release(t), "5.14") {
		l.write("pod/c1", burst, "1000")
		l.quota("pod", 90*time.Millisecond) // a burst alone wakes no reader
		l.expect(s, Written, "/pod/c1", burst)
	}
}

// TestNoticesTheGroupInAScope makes what crun makes: a scope, a group in it, and the limit of that; then the scope's.
func TestNoticesTheGroupInAScope(t *testing.T) {
	l := newLab(t)
	s := l.run()
	scope := "libpod-" + strings.Repeat("b", 64) + ".scope"
	l.mkdir(scope)
	l.expect(s, Appeared, "/"+scope, "")
	l.mkdir(scope + "/" + workload.InScope)
	l.expect(s, Appeared, "/"+scope+"/"+workload.InScope, "")
	l.expect(s, Written, "/"+scope+"/"+workload.InScope, l.quota(scope+"/"+workload.InScope, 50*time.Millisecond))
	if pods := l.pods(s); len(pods) != 1 || pods[0].Path != "" || len(pods[0].Containers) != 1 ||
		pods[0].Containers[0].Runtime != podman {
		t.Errorf("%+v", pods)
	}
	l.quota(scope, 50*time.Millisecond)
	l.expect(s, Appeared, "/"+scope, "")
	if pods := l.pods(s); len(pods) != 1 || pods[0].Path != l.path+"/"+scope || len(pods[0].Containers) != 1 {
		t.Errorf("both have a limit: %+v", pods)
	}
}

func TestNoticesTheFirstTask(t *testing.T) {
	l := newLab(t)
	l.mkdir("c")
	s := l.run()
	l.groups["c"].Idle()
	l.expect(s, Attached, "/c", "cgroup.procs")
}

// TestDistinguishesRecreatedGroups makes a group of the same name again, with and without a pause: the Scanner may
// see the two as one change.
func TestDistinguishesRecreatedGroups(t *testing.T) {
	l := newLab(t)
	l.mkdir("pod")
	l.mkdir("pod/c1")
	s := l.run()
	for i, pause := range []time.Duration{0, 0, 20 * time.Millisecond, 0} {
		was := l.pods(s)[0].Containers[0].ID
		l.rmdir("pod/c1")
		time.Sleep(pause)
		l.mkdir("pod/c1")
		l.expect(s, Appeared, "/pod/c1", "")
		var now workload.ID
		for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			// with a pause, the snapshot without the container comes first
			if p := l.pods(s); len(p) == 1 && p[0].Path == l.path+"/pod" {
				now = p[0].Containers[0].ID
				break
			}
		}
		if now.Path != was.Path || now.Inode == was.Inode {
			t.Fatalf("round %d: %v, then %v", i, was, now)
		}
		// The watch is that of the new group, not of the old one.
		l.expect(s, Written, "/pod/c1", l.quota("pod/c1", 30*time.Millisecond))
	}
	if n := l.watches(s); n != 3 {
		t.Errorf("%d watches of 3 groups", n)
	}
}

func TestNoticesTheEnd(t *testing.T) {
	l := newLab(t)
	l.mkdir("pod")
	l.mkdir("pod/c1")
	s := l.run()
	if n := l.watches(s); n != 3 {
		t.Errorf("%d watches of 3 groups", n)
	}
	l.rmdir("pod/c1")
	l.rmdir("pod")
	l.expect(s, Vanished, "/pod", "") // the last
	for _, p := range l.pods(s) {
		t.Errorf("still there: %+v", p)
	}
	if n := l.watches(s); n != 1 {
		t.Errorf("%d watches of the one group that is left", n)
	}
}

// TestStaysOutsideContainers: groups inside an engine's container are neither watched nor managed.
func TestStaysOutsideContainers(t *testing.T) {
	l := newLab(t)
	s := l.run()
	id := fmt.Sprintf("%064x", 7)
	l.mkdir("docker")
	l.mkdir("docker/" + id)
	l.expect(s, Appeared, "/docker/"+id, "")
	l.mkdir("docker/" + id + "/docker")
	l.mkdir("docker/" + id + "/docker/" + id)
	l.quota("docker/"+id, 50*time.Millisecond)
	l.expect(s, Written, "/docker/"+id, l.quota("docker/"+id, 40*time.Millisecond))
	if n := l.watches(s); n != 3 {
		t.Errorf("%d watches of the lab, its folder and the container", n)
	}
	var names []string
	for _, p := range l.pods(s) {
		for _, c := range p.Containers {
			names = append(names, c.Path)
		}
	}
	if len(names) != 1 || names[0] != l.path+"/docker/"+id {
		t.Errorf("containers: %v", names)
	}
}

// TestNoEventIsLostAtBirth makes groups, their children and the limits as fast as it can. In the end the Scanner
// knows all of them without a rescan, whichever events it got.
func TestNoEventIsLostAtBirth(t *testing.T) {
	l := newLab(t)
	s := l.run()
	rescans, _ := s.Counts()
	const pods, containers = 20, 3
	for i := range pods {
		pod := fmt.Sprintf("p%02d", i)
		l.mkdir(pod)
		for j := range containers {
			l.mkdir(fmt.Sprintf("%s/c%d", pod, j))
		}
	}
	count := func() (p, c int) {
		for _, pod := range l.pods(s) {
			p++
			c += len(pod.Containers)
		}
		return p, c
	}
	deadline := time.Now().Add(10 * time.Second)
	p, c := count()
	for ; time.Now().Before(deadline) && (p != pods || c != pods*containers); p, c = count() {
		time.Sleep(time.Millisecond)
	}
	if p != pods || c != pods*containers {
		t.Errorf("%d pods with %d containers, want %d with %d", p, c, pods, pods*containers)
	}
	if now, lost := s.Counts(); now != rescans || lost != 0 {
		t.Errorf("helped by a rescan: %d, before %d; events lost %d times", now, rescans, lost)
	}
}
