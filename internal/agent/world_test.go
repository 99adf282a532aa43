package agent

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/pauses"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

const ms = time.Millisecond

// world is an agent on a simulated machine with cgroup v1, which a test scripts step by step.
type world struct {
	t      testing.TB
	kernel *sim.Kernel
	tree   *cgroup.Tree
	place  *place
	host   *host
	lever  *lever
	disk   *journal.Memory
	agent  *Agent
	shield bool // where CPUs can be given away
}

func newWorld(t testing.TB) *world { return worldOf(t, 4) }

// worldOf has so many CPUs.
func worldOf(t testing.TB, cpus int) *world {
	return worldOn(t, sim.Config{CPUs: cpus, Version: 1, BurstFile: true, Seed: 1})
}

func worldOn(t testing.TB, machine sim.Config) *world {
	t.Helper()
	k := sim.New(machine)
	tree, err := cgroup.Detect(k)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, kernel: k, tree: tree, place: &place{wake: make(chan struct{}, 1)}, host: &host{kernel: k},
		lever: &lever{},
		disk:  journal.NewMemory()}
	j, err := journal.OpenDisk(w.disk, "boot", k.Now)
	if err != nil {
		t.Fatal(err)
	}
	writer := apply.New(tree, j, k.Now)
	writer.Sleep = func(time.Duration) {}
	w.agent = New(Options{Tree: tree, Discover: w.place, Host: w.host, Writer: writer, Switch: w.lever,
		Pauses: pauses.New(""), Clock: k.Now, Log: slog.New(slog.DiscardHandler),
		Rules: policy.Rules{Burst: true, Nested: true},
		Strategy: strategy.Node{Strategy: strategy.Strategy{
			SharePoolThresholdPercent: 100}}, Version: "1.0", Kernel: "sim"})
	return w
}

// group makes a group with a limit per 100 ms.
func (w *world) group(path string, quota time.Duration) workload.ID {
	w.t.Helper()
	w.kernel.AddGroup(path)
	w.limit(path, quota)
	return w.id(path)
}

// container makes a group that is managed with policy auto.
func (w *world) container(path string, quota time.Duration, load sim.Load) workload.Container {
	w.t.Helper()
	c := workload.Container{ID: w.group(path, quota), Name: path, Runtime: "cgroup", Strategy: strategy.Default()}
	c.Strategy.Policy = strategy.Auto
	if load.Threads > 0 {
		w.kernel.SetLoad(path, load)
	}
	return c
}

// hog is a container alone that wants two CPUs and is limited to half of one.
func (w *world) hog(path string) {
	w.t.Helper()
	w.alone(w.container(path, 50*ms, sim.Spin(2)))
}

func (w *world) alone(c workload.Container) {
	w.place.pods = append(w.place.pods, workload.Pod{Containers: []workload.Container{c}})
}

// limit writes a quota as an owner does.
func (w *world) limit(path string, quota time.Duration) {
	w.t.Helper()
	file := "cpu" + path + "/cpu.cfs_quota_us"
	if w.tree.Version() == cgroup.V2 {
		file = path[1:] + "/cpu.max"
	}
	if err := w.kernel.ForeignWrite(file, fmt.Sprint(quota.Microseconds())); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) id(path string) workload.ID {
	w.t.Helper()
	inode, err := w.tree.Inode(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return workload.ID{Path: path, Inode: inode}
}

// run takes turns when the agent wants them, each a little late.
func (w *world) run(d time.Duration) {
	end := w.kernel.Now().Add(d)
	for w.kernel.Now().Before(end) {
		next := w.agent.Tick(w.kernel.Now()).Next.Add(100 * time.Microsecond)
		if next.After(end) {
			next = end
		}
		w.kernel.Advance(max(next.Sub(w.kernel.Now()), 10*time.Microsecond))
	}
}

// ours counts the writes that were not an owner's.
func (w *world) ours() int {
	n := 0
	for _, x := range w.kernel.Writes() {
		if !x.Foreign {
			n++
		}
	}
	return n
}

func (w *world) want(path string, quota, burst time.Duration) {
	w.t.Helper()
	want := cpu.Bandwidth{Quota: quota, Period: 100 * ms, Burst: burst}
	if got := w.kernel.Bandwidth(path); got != want {
		w.t.Errorf("%s holds %v, want %v", path, got, want)
	}
}

// wantRaised also proves that the scenario would show it if nothing were put back.
func (w *world) wantRaised(path string, limit time.Duration) {
	w.t.Helper()
	if got := w.kernel.Bandwidth(path); got.Quota <= limit {
		w.t.Fatalf("%s holds %v, want more than %v", path, got, limit)
	}
}

func (w *world) status(path string) report.Container {
	w.t.Helper()
	c, err := report.Find(w.agent.Status().Containers, path)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// booked is what is on record of a group, without a reading for who asks.
func (w *world) booked(path string) report.Totals {
	w.t.Helper()
	for _, c := range w.agent.Containers() {
		if c.Cgroup == path {
			return c.Totals
		}
	}
	w.t.Fatalf("%s is not on record", path)
	return report.Totals{}
}

func (w *world) wantProblem(text string) {
	w.t.Helper()
	problems := strings.Join(w.agent.Status().Problems, "\n")
	if text == "" && problems != "" || !strings.Contains(problems, text) {
		w.t.Errorf("problems %q, want %q", problems, text)
	}
}

// place is what runs, as a test arranges it.
type place struct {
	pods    []workload.Pod
	touched []string
	wake    chan struct{}
	err     error
	asked   func()
}

func (p *place) Pods() ([]workload.Pod, error) {
	if p.asked != nil {
		p.asked()
	}
	return p.pods, p.err
}

func (p *place) Touched() []string {
	list := p.touched
	p.touched = nil
	return list
}

func (p *place) Wake() <-chan struct{}         { return p.wake }
func (p *place) Counts() (rescans, lost int64) { return 3, 1 }

// host is the simulated machine seen from /proc.
type host struct {
	kernel  *sim.Kernel
	threads func([]int) map[int]time.Duration
}

func (h *host) Online() (int, error)         { return h.kernel.Online(), nil }
func (h *host) Busy() (time.Duration, error) { return h.kernel.Busy(), nil }
func (h *host) Self() (time.Duration, int64) { return time.Second, 1 << 20 }
func (h *host) Threads(tids []int) map[int]time.Duration {
	if h.threads == nil {
		return nil
	}
	return h.threads(tids)
}

// lever is a kill switch in memory.
type lever struct {
	held   bool
	reason string
	since  time.Time
	err    error
}

func (l *lever) Held() bool               { return l.held }
func (l *lever) Why() (string, time.Time) { return l.reason, l.since }

func (l *lever) Hold(reason string, at time.Time) error {
	if l.err == nil {
		l.held, l.reason, l.since = true, reason, at
	}
	return l.err
}

func (l *lever) Resume() error {
	if l.err == nil {
		*l = lever{}
	}
	return l.err
}
