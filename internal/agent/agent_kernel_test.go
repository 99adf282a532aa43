package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/journal"
	"plimsoll/internal/pauses"
	"plimsoll/internal/policy"
	"plimsoll/internal/strategy"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/workload"
)

// realHost is this machine, as the command wires it.
type realHost struct{ *sysfs.Host }

func (h realHost) Online() (int, error) {
	set, err := h.Host.Online()
	return len(set), err
}

func (h realHost) Threads(tids []int) map[int]time.Duration {
	used, _ := h.Host.Threads(tids)
	return used
}

func (h realHost) Self() (time.Duration, int64) { return 0, 0 }

// realAgent manages one group of the running kernel with a policy.
func realAgent(t *testing.T, g *cgrouptest.Group, p strategy.Policy) *Agent {
	t.Helper()
	boot, err := journal.BootID()
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(t.TempDir(), boot, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	inode, err := g.Tree().Inode(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	c := workload.Container{ID: workload.ID{Path: g.Path, Inode: inode}, Name: g.Path, Strategy: strategy.Default()}
	c.Strategy.Policy = p
	_, err = g.Tree().Burst(g.Path)
	return New(Options{Tree: g.Tree(), Discover: &place{pods: []workload.Pod{{Containers: []workload.Container{c}}}},
		Host: realHost{sysfs.NewHost("/")}, Writer: apply.New(g.Tree(), j, time.Now), Switch: &lever{},
		Pauses: pauses.New(""),
		Clock:  time.Now, Log: slog.New(slog.DiscardHandler), Rules: policy.Rules{Burst: err == nil},
		Strategy: strategy.Node{Strategy: strategy.Strategy{SharePoolThresholdPercent: 100}}})
}

// TestKernelUsageOfThreads: on v1 a group of the cpu hierarchy alone is measured by its threads. That is held against
// what the kernel says of the process just before and just after.
func TestKernelUsageOfThreads(t *testing.T) {
	g := cgrouptest.New(t)
	g.Limit(20 * ms)
	p := g.Spin(1)[0]
	acct := filepath.Join(cgrouptest.Root(), "cpuacct", g.Path)
	if _, err := os.Stat(acct); err == nil { // v1: out of cpuacct
		if err := os.WriteFile(filepath.Join(cgrouptest.Root(), "cpuacct/cgroup.procs"), []byte(strconv.Itoa(p.PID())),
			0o644); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Rmdir(acct); err != nil {
			t.Fatal(err)
		}
	}
	a := realAgent(t, g, strategy.None)
	pid := []int{p.PID()}
	start := a.Host.Threads(pid)[pid[0]]
	a.Tick(time.Now())
	first := a.Host.Threads(pid)[pid[0]]
	time.Sleep(time.Second)
	before := a.Host.Threads(pid)[pid[0]]
	a.Tick(time.Now())
	after := a.Host.Threads(pid)[pid[0]]
	got := a.Status().Containers[0].Totals.Usage
	// v2 counts whole microseconds.
	if least, most := before-first-time.Microsecond, after-start+time.Microsecond; got < least || got > most ||
		got == 0 {
		t.Errorf("used %v by the agent's count, %v..%v by the kernel's", got, least, most)
	}
}
