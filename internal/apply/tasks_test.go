package apply

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
)

// fakeTasks is a kernel with tasks of the fair class and others; base is the slice of those that asked for none.
type fakeTasks struct {
	base    time.Duration
	slices  map[int]time.Duration // 0: none of its own
	cookies map[int]uint64
	refuses map[int]error
	bound   map[int]bool
	made    func() // called once, in the middle of a walk
}

var errOtherClass = errors.New("another class")

func (f *fakeTasks) Slice(tid int) (time.Duration, error) {
	slice, there := f.slices[tid]
	switch {
	case !there:
		return 0, syscall.ESRCH
	case slice < 0:
		return 0, errOtherClass
	case slice == 0:
		return f.base, nil
	}
	return slice, nil
}

func (f *fakeTasks) SetSlice(tid int, slice time.Duration) error {
	if err := f.refuses[tid]; err != nil {
		return err
	}
	f.slices[tid] = slice
	if f.made != nil {
		f.made()
		f.made = nil
	}
	return nil
}

func (f *fakeTasks) BaseSlice() (time.Duration, error)  { return f.base, nil }
func (f *fakeTasks) Cookie(tid int) (uint64, error)     { return f.cookies[tid], nil }
func (f *fakeTasks) SetCookie(tid int, id uint64) error { f.cookies[tid] = id; return nil }
func (f *fakeTasks) Name(tid int) string                { return fmt.Sprintf("task%d", tid) }

func (f *fakeTasks) RunsOn(tid int, _ []int) (bool, error) {
	return !f.bound[tid], nil
}
func (f *fakeTasks) Passed(err error) bool { return err == syscall.ESRCH || err == errOtherClass }
func (f *fakeTasks) want(t *testing.T, want map[int]time.Duration) {
	t.Helper()
	if diff := cmp.Diff(want, f.slices); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
}

// crowd is a kernel whose groups have these tasks.
type crowd struct {
	*sim.Kernel
	tasks map[string]string
}

func (c crowd) ReadFile(name string) ([]byte, error) {
	if _, err := c.Kernel.ReadFile(name); err != nil || path.Base(name) != "cgroup.threads" {
		return c.Kernel.ReadFile(name)
	}
	return []byte(c.tasks["/"+path.Dir(name)]), nil
}

// tasked is a node with tasks: 1 and 2 in /pod/a, 3 in /pod/b, 4 in /free; 5 is of another class,
// 6 has a slice of its own.
func tasked(t *testing.T) (*node, *fakeTasks, map[string]string) {
	t.Helper()
	n := newNode(t, v2)
	f := &fakeTasks{base: 1400 * time.Microsecond,
		slices:  map[int]time.Duration{1: 0, 2: 0, 3: 0, 4: 0, 5: -1, 6: 20 * ms},
		cookies: map[int]uint64{6: 99}, refuses: map[int]error{}}
	tasks := map[string]string{"/pod/a": "1\n2\n7\n", "/pod/b": "3\n5\n6\n", "/free": "4\n"} // 7 has ended meanwhile
	var err error
	n.tree, err = cgroup.Detect(crowd{n.k, tasks})
	n.must(err)
	n.start()
	n.w.Tasks = f
	return n, f, tasks
}

func (n *node) slice(group string, to plan.Value) plan.Change {
	return plan.Change{Cgroup: n.id(group), Knob: plan.Slice, From: "0s", To: to, Why: "test"}
}

// TestHiddenTasks: tasks of another PID namespace are listed as 0, and a system call with 0 is about the agent itself.
func TestHiddenTasks(t *testing.T) {
	n, f, tasks := tasked(t)
	tasks["/pod/a"] = "0\n0\n"
	f.slices[0] = 0 // the agent's own
	before := maps.Clone(f.slices)
	for range 2 {
		if r := n.do(n.slice("/pod/a", "3ms"), plan.Refused); !strings.Contains(r.Err, "hostPID: true") {
			t.Errorf("error %q", r.Err)
		}
	}
	f.want(t, before)
	if counts, err := ReadTasks(n.tree, f, "/pod/a", plan.Slice); len(counts) > 0 || !errors.Is(err, errHidden) {
		t.Errorf("read as %v, %v", counts, err)
	}
	n.wantIdempotent()
}

func TestSlicesOfAGroup(t *testing.T) {
	n, f, _ := tasked(t)
	before := maps.Clone(f.slices)
	n.do(n.slice("/pod", "3ms"), plan.Applied)
	f.want(t, map[int]time.Duration{1: 3 * ms, 2: 3 * ms, 3: 3 * ms, 4: 0, 5: -1, 6: 20 * ms})
	f.slices[1] = 0 // as of one that came from elsewhere
	counts, err := ReadTasks(n.tree, f, "/pod", plan.Slice)
	if diff := cmp.Diff(map[plan.Value]int{"0s": 1, "3ms": 2, "20ms": 1}, counts); diff != "" || err != nil {
		t.Errorf("(-want +got): %s, %v", diff, err)
	}
	n.do(n.slice("/pod", "5ms"), plan.Applied)
	f.want(t, map[int]time.Duration{1: 5 * ms, 2: 5 * ms, 3: 5 * ms, 4: 0, 5: -1, 6: 20 * ms})
	n.start() // after a crash
	n.w.Tasks = f
	e := n.j.Entries()[0]
	if held, ours := n.w.InFile(e); held != "5ms" || !ours {
		t.Errorf("stands %s, ours %v", held, ours)
	}
	n.wantOutcomes(n.w.Restore(nil, false), "/pod slice applied 0s")
	if held, ours := n.w.InFile(e); ours {
		t.Errorf("%s stands after it was put back", held)
	}
	f.want(t, before)
	n.wantIdempotent()
}

// TestSlicesAfterACrash: the journal knew of a slice that not all tasks had yet.
func TestSlicesAfterACrash(t *testing.T) {
	n, f, _ := tasked(t)
	before := maps.Clone(f.slices)
	n.do(n.slice("/pod", "3ms"), plan.Applied)
	n.must(n.j.Intend(n.id("/pod"), plan.Slice, "5ms"))
	f.slices[1] = 5 * ms
	n.start()
	n.w.Tasks = f
	n.w.Restore(nil, false)
	f.want(t, before)
	n.wantIdempotent()
}

// TestTasksMadeMeanwhile: a thread that is made while the group is walked has what its maker had.
func TestTasksMadeMeanwhile(t *testing.T) {
	n, f, tasks := tasked(t)
	fork := func(slice time.Duration) func() {
		return func() {
			f.slices[8] = slice
			tasks["/pod/a"] = "1\n2\n8\n"
		}
	}
	f.made = fork(0)
	n.do(n.slice("/pod", "3ms"), plan.Applied)
	if f.slices[8] != 3*ms {
		t.Errorf("the new one has %v", f.slices[8])
	}
	f.made = fork(3 * ms)
	n.w.Restore(nil, false)
	if f.slices[8] != 0 {
		t.Errorf("the new one keeps %v", f.slices[8])
	}
}

func TestTasksRefused(t *testing.T) {
	n, f, _ := tasked(t)
	f.refuses[2] = syscall.EPERM
	if r := n.do(n.slice("/pod", "3ms"), plan.Refused); !strings.Contains(r.Err, "2 tasks set") ||
		!strings.Contains(r.Err, "CAP_SYS_NICE") {
		t.Errorf("%q", r.Err)
	}
	if f.slices[1] != 3*ms || f.slices[3] != 3*ms {
		t.Errorf("the others have %v", f.slices)
	}
	delete(f.refuses, 2)
	n.wantOutcomes(n.w.Restore(nil, false), "/pod slice applied 0s")
	n.wantIdempotent()
}

func TestCookiesOfAGroup(t *testing.T) {
	n, f, _ := tasked(t)
	n.do(plan.Change{Cgroup: n.id("/pod"), Knob: plan.Cookie, From: "0", To: "4711"}, plan.Applied)
	if diff := cmp.Diff(map[int]uint64{1: 4711, 2: 4711, 3: 4711, 5: 4711, 6: 99, 7: 4711}, f.cookies); diff != "" {
		t.Errorf("cookies (-want +got):\n%s", diff)
	}
	n.k.RemoveGroup("/pod/a")
	n.w.Restore(nil, false)
	if f.cookies[3] != 0 || f.cookies[6] != 99 {
		t.Errorf("cookies %v", f.cookies)
	}
	n.wantIdempotent()
}

func TestTasksOfAGroupThatIsGone(t *testing.T) {
	n, f, _ := tasked(t)
	n.do(n.slice("/pod/a", "3ms"), plan.Applied)
	stale := n.slice("/pod/a", "5ms")
	n.k.RemoveGroup("/pod/a")
	n.do(stale, plan.Gone)
	n.wantIdempotent()
	n.w.Tasks = nil
	n.do(n.slice("/pod/b", "3ms"), plan.Refused)
	f.want(t, map[int]time.Duration{1: 3 * ms, 2: 3 * ms, 3: 0, 4: 0, 5: -1, 6: 20 * ms})
	if left := n.j.Entries(); len(left) > 0 {
		t.Errorf("left in the journal: %+v", left)
	}
}
