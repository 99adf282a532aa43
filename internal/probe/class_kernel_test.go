package probe

import (
	"errors"
	"io/fs"
	"path"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

// A task with real-time priority uses none of its group's runtime: nothing is foreseen because of it, and its CPU is
// not one of those that take from the pool.
func TestRealtimeTaskTakesNoRuntime(t *testing.T) {
	p := open(t, Options{Ahead: true})
	g := cgrouptest.New(t)
	spinner := g.Spin(1)[0]
	realtime(t, g, spinner.PID())
	watch(t, p, g)
	for range 5 {
		limit(t, g, 20*ms, 100*ms) // the timer runs again, so that the period is another one
		time.Sleep(30 * ms)
	}
	var got kernelGroup
	if err := p.objects.Groups.Lookup(inode(t, g), &got); err != nil {
		t.Fatal(err)
	}
	if got.Actives != 0 || got.Aheads != 0 {
		t.Errorf("%d CPUs are active, %d throttles foreseen", got.Actives, got.Aheads)
	}
}

// realtime gives a process of a group real-time priority: in a kernel with CONFIG_RT_GROUP_SCHED its group needs time
// for that.
func realtime(t *testing.T, g *cgrouptest.Group, pid int) {
	t.Helper()
	err := g.Dir().WriteFile(path.Join(g.Tree().Dir(g.Path), "cpu.rt_runtime_us"), []byte("200000"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	err = unix.SchedSetAttr(pid, &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	if errors.Is(err, unix.EPERM) {
		cgrouptest.Elsewhere(t, "test/vm/matrix.sh", "CONFIG_RT_GROUP_SCHED on cgroup v2: no group has real-time tasks")
	}
	if err != nil {
		t.Fatal(err)
	}
}
