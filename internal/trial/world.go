// Package trial drives the shipped agent over a simulated machine: many seeds, loads and faults, on virtual time, with
// checkers that see what no real kernel shows.
package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"plimsoll/internal/agent"
	"plimsoll/internal/apply"
	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/pauses"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Group is one container of a scenario.
type Group struct {
	Path     string // "/lab/a", or "/lab/pod/a" in the pod "/lab/pod"
	Pod      string // path of its pod; "" when it has none
	Tenant   string // the namespace of its pod
	Quota    time.Duration
	Period   time.Duration
	Expiry   time.Time // its period timer fires then; zero: by chance
	Request  float64
	Load     sim.Load
	Strategy strategy.Strategy
}

// Scenario is a machine and what runs on it.
type Scenario struct {
	Kernel    sim.Config
	Threshold int64 // sharePoolThresholdPercent
	Groups    []Group
	PodQuota  map[string]time.Duration // where it is not the sum over the containers
	Events    bool                     // throttle events are sent
	Counts    bool                     // and count the wall time of throttles
	Harm      time.Duration            // for so long a group is said to be throttled at each write of ours, with Counts
	Ahead     bool                     // also ahead of a throttle, where it can be foreseen
	Extra     strategy.ExtraCores
	WriteCost time.Duration // what a write takes of the agent's time
}

// World is a scenario in motion.
type World struct {
	Kernel     *sim.Kernel
	Agent      *agent.Agent
	Turns      int
	scene      Scenario
	disk       journal.Disk
	place      *place
	overdue    []plan.Result
	suppressed pushedEvents
	rng        *rand.Rand
	spent      time.Duration // by writes, since the kernel's time last went on
	spentAt    time.Time
	answers    int // throttle events that the agent was woken for

	foresight foresight
}

// New builds the machine, sets its limits and starts its loads and its agent.
func New(s Scenario) (*World, error) {
	w := &World{Kernel: sim.New(s.Kernel), scene: s, disk: journal.NewMemory(),
		rng: rand.New(rand.NewPCG(s.Kernel.Seed, 7))}
	w.place = &place{wake: make(chan struct{})}
	for _, g := range s.Groups {
		w.make(g)
	}
	for _, pod := range w.place.pods {
		if err := w.limitPod(pod); err != nil {
			return nil, err
		}
	}
	for _, g := range s.Groups {
		if err := w.Limit(g.Path, g.Quota, g.Period); err != nil {
			return nil, err
		}
		if !g.Expiry.IsZero() {
			w.Kernel.SetExpiry(g.Path, g.Expiry)
		}
		w.Kernel.SetTasks(g.Path, max(1, g.Load.Threads))
		w.Kernel.SetLoad(g.Path, g.Load)
	}
	if s.Ahead {
		w.foresight.reported = map[uint64]filling{}
		w.Kernel.At(w.Kernel.Now(), w.checkAhead)
	}
	return w, w.Restart()
}

func (w *World) make(g Group) {
	w.Kernel.AddGroup(g.Path)
	c := workload.Container{ID: w.id(g.Path), Name: g.Path, Runtime: "cgroup", Request: g.Request, Strategy: g.Strategy}
	for i := range w.place.pods {
		if p := &w.place.pods[i]; g.Pod != "" && p.Path == g.Pod {
			p.Containers = append(p.Containers, c)
			return
		}
	}
	pod := workload.Pod{Namespace: g.Tenant, Containers: []workload.Container{c}}
	if g.Pod != "" {
		pod.ID, pod.Name = w.id(g.Pod), g.Pod
	}
	w.place.pods = append(w.place.pods, pod)
}

// limitPod gives a pod the sum of its containers' limits, as the kubelet does.
func (w *World) limitPod(pod workload.Pod) error {
	if pod.Path == "" {
		return nil
	}
	sum, period := time.Duration(0), cpu.DefaultPeriod
	for _, g := range w.scene.Groups {
		if g.Pod == pod.Path && g.Quota != cpu.Unlimited { // a sandbox is not counted
			sum, period = sum+g.Quota, g.Period
		}
	}
	if quota, ok := w.scene.PodQuota[pod.Path]; ok {
		sum = quota
	}
	return w.Limit(pod.Path, sum, period)
}

// Limit writes a limit as an owner does.
func (w *World) Limit(path string, quota, period time.Duration) error {
	dir, micros := path[1:], func(d time.Duration) string { return fmt.Sprint(d.Microseconds()) }
	if quota == cpu.Unlimited {
		return nil // as it was made
	}
	if w.scene.Kernel.Version == 1 {
		dir = "cpu/" + dir
		if err := w.Kernel.ForeignWrite(dir+"/cpu.cfs_period_us", micros(period)); err != nil {
			return err
		}
		return w.Kernel.ForeignWrite(dir+"/cpu.cfs_quota_us", micros(quota))
	}
	return w.Kernel.ForeignWrite(dir+"/cpu.max", micros(quota)+" "+micros(period))
}

func (w *World) id(path string) workload.ID {
	tree, err := cgroup.Detect(w.Kernel)
	if err != nil {
		panic(err) // the simulated machine always has a cpu controller
	}
	inode, _ := tree.Inode(path)
	return workload.ID{Path: path, Inode: inode}
}

// Restart starts an agent as after a crash: it finds the old one's journal, and first puts everything back.
func (w *World) Restart() error {
	writer, _, err := w.open()
	if err == nil {
		writer.Restore(nil, false)
		err = w.begin(writer)
	}
	return err
}

// open opens the journal, which has the entries of the agent before.
func (w *World) open() (*apply.Writer, []journal.Entry, error) {
	tree, err := cgroup.Detect(w.Kernel)
	if err != nil {
		return nil, nil, err
	}
	j, err := journal.OpenDisk(w.disk, "boot", w.Kernel.Now)
	if err != nil {
		return nil, nil, err
	}
	writer := apply.New(tree, j, w.Kernel.Now)
	writer.Sleep = func(time.Duration) {}
	return writer, j.Entries(), nil
}

// begin makes the agent.
func (w *World) begin(writer *apply.Writer) error {
	tree, err := cgroup.Detect(w.Kernel)
	if err != nil {
		return err
	}
	kept, err := w.keep()
	if err != nil {
		return err
	}
	var events agent.ThrottleEvents
	if w.scene.Events {
		w.suppressed = pushedEvents{}
		events, w.Kernel.OnThrottle = counted{w.suppressed, w}, w.bring
	}
	w.Agent = agent.New(agent.Options{
		Events: events, Tree: tree, Discover: w.place, Host: host{w.Kernel}, Writer: slow{writer, w}, Switch: never{},
		Pauses: pauses.New(""), Clock: w.now, Log: slog.New(slog.DiscardHandler),
		Rules: policy.Rules{Burst: w.scene.Kernel.BurstFile, BurstAboveQuota: w.scene.Kernel.BurstAboveQuota,
			Nested: w.scene.Kernel.Version == 1, Refill: w.scene.Kernel.BurstFile},
		Seed: w.scene.Kernel.Seed,
		Strategy: strategy.Node{Strategy: strategy.Strategy{SharePoolThresholdPercent: w.scene.Threshold},
			Extra: w.scene.Extra},
	})
	return w.Agent.ResumeReceipts(kept)
}

// keep is what the agent leaves of its receipts, as the file of package receipt/disk has it.
func (w *World) keep() (kept policy.KeptReceipts, err error) {
	if w.Agent == nil {
		return kept, nil
	}
	data, err := json.Marshal(w.Agent.KeptReceipts())
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	return kept, err
}

// slow is a writer whose writes take time.
type slow struct {
	*apply.Writer
	world *World
}

func (s slow) Do(changes []plan.Change) []plan.Result {
	s.world.now()
	s.world.spent += time.Duration(len(changes)) * s.world.scene.WriteCost
	return s.Writer.Do(changes)
}

// now is the agent's time: the kernel's, and what writes took since that last went on.
func (w *World) now() time.Time {
	if at := w.Kernel.Now(); !at.Equal(w.spentAt) {
		w.spentAt, w.spent = at, 0
	}
	return w.spentAt.Add(w.spent)
}

// Run runs the world for d, with turns at the times that the agent returns, each a little late. check is called after
// every turn.
func (w *World) Run(d time.Duration, check func(agent.Turn)) {
	end := w.Kernel.Now().Add(d)
	for w.Kernel.Now().Before(end) {
		turn := w.Agent.Tick(w.Kernel.Now())
		w.Turns++
		w.noteOverdue(turn)
		if check != nil {
			check(turn)
		}
		next := turn.Next.Add(time.Duration(w.rng.ExpFloat64() * float64(300*time.Microsecond)))
		if next.After(end) {
			next = end
		}
		w.Kernel.Advance(max(next.Sub(w.Kernel.Now()), 10*time.Microsecond))
	}
}

// noteOverdue remembers the lowerings that could wait no longer: policy/grant.go, known limits.
func (w *World) noteOverdue(turn agent.Turn) {
	for _, r := range turn.Results {
		if strings.HasSuffix(r.Change.Why, policy.Overdue) {
			w.overdue = append(w.overdue, r)
		}
	}
}

// Stop ends the agent in order: it puts everything back.
func (w *World) Stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.Agent.Run(ctx); err != nil {
		panic(err) // the simulated kernel refuses no restore
	}
}

// place is what runs: it never changes by itself.
type place struct {
	pods []workload.Pod
	wake chan struct{}
}

func (p *place) Pods() ([]workload.Pod, error)   { return p.pods, nil }
func (p *place) Touched() []string               { return nil }
func (p *place) Wake() <-chan struct{}           { return p.wake }
func (p *place) Counts() (rescans, events int64) { return 0, 0 }

// pushedEvents come from World.bring. It has the groups whose events are suppressed.
type pushedEvents map[uint64]bool

func (m pushedEvents) SuppressEvents(group uint64, suppress bool) error {
	m[group] = suppress
	return nil
}

func (pushedEvents) Limit(uint64, time.Duration) error            { return nil }
func (pushedEvents) Watch([]uint64) error                         { return nil }
func (pushedEvents) Read(time.Time) ([]bandwidth.Throttle, error) { return nil, io.EOF }
func (pushedEvents) Totals(uint64) (report.Throttles, bool)       { return report.Throttles{}, false }
func (pushedEvents) Uses(uint64) []int64                          { return nil }
func (pushedEvents) Priority() (got, why string)                  { return "", "" }
func (pushedEvents) Unplaced() int64                              { return 0 }
func (pushedEvents) Lost() int64                                  { return 0 }
func (pushedEvents) Close() error                                 { return nil }

// requestsWaiting is how many requests wait in each throttle.
const requestsWaiting = 3

// counted are events with the wall time that groups were throttled, as the programs in the kernel count it, where the
// scenario has them.
type counted struct {
	pushedEvents
	world *World
}

func (c counted) Totals(inode uint64) (report.Throttles, bool) {
	if !c.world.scene.Counts {
		return c.pushedEvents.Totals(inode)
	}
	for _, g := range c.world.scene.Groups {
		if c.world.id(g.Path).Inode == inode {
			wall := c.world.Kernel.ThrottledWall(g.Path) + time.Duration(c.world.wrote(g.Path))*c.world.scene.Harm
			requests := requestsWaiting * wall
			return report.Throttles{Begun: 1, Wall: wall, Requests: &requests}, true
		}
	}
	return report.Throttles{}, false
}

// wrote is how often the agent wrote to a group.
func (w *World) wrote(path string) (n int) {
	if w.scene.Harm == 0 {
		return 0
	}
	for _, x := range w.Kernel.Writes() {
		if x.Group.Path == path && !x.Foreign {
			n++
		}
	}
	return n
}

// host is the simulated machine seen from /proc.
type host struct{ kernel *sim.Kernel }

func (h host) Online() (int, error)                  { return h.kernel.Online(), nil }
func (h host) Busy() (time.Duration, error)          { return h.kernel.Busy(), nil }
func (h host) Threads([]int) map[int]time.Duration   { return nil }
func (h host) Self() (used time.Duration, rss int64) { return 0, 0 }

// never is a kill switch that is never used.
type never struct{}

func (never) Held() bool                   { return false }
func (never) Hold(string, time.Time) error { return nil }
func (never) Resume() error                { return nil }
func (never) Why() (string, time.Time)     { return "", time.Time{} }
