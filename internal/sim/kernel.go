// Package sim is a machine in memory, on virtual time: a cgroup filesystem that reads, refuses and throttles as the
// kernel does, CPUs to share, and loads that use them. Kernel satisfies cgroup.FS, so the shipped agent can be
// driven against it for hours of virtual time in a second, with faults at every write. Tests compare its view with what
// really happened, which a real kernel does not show.
//
// Problem: what an agent does to a throttled group depends on the exact order of timer expiries, refills, demands and
// writes, which cannot be brought about on a real kernel at will.
//
// Approach: a fluid model, advanced from event to event. Between two events every runnable thread runs at the same
// rate: one CPU, or its even share when there are more threads than CPUs (max-min fair). A group runs while no pool
// (package bandwidth) on its way to the root is empty; what it uses is taken from all of them. Events are arrivals
// and ends of jobs, empty pools, period timers with a random phase each, and scheduled actions. All is integer
// arithmetic on nanoseconds; the same seed gives the same run.
//
// Known limits: weights and cpu.idle are kept and checked but do not move CPU time. There are no CPUs as places:
// no migration, no affinity, no 5 ms slices, no tick. The twin test holds these against a real kernel.
package sim

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"sort"
	"strings"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/workload"
)

const never = time.Duration(math.MaxInt64)

// Config is what machine to make. The zero value is one CPU with cgroup v2 and no burst.
type Config struct {
	CPUs            int  // online CPUs
	PossibleCPUs    int  // that may ever be online; 0: no others
	Version         int  // of cgroup: 1 (hierarchies cpu and cpuacct) or 2
	BurstFile       bool // 5.14 and later
	BurstAboveQuota bool // Alibaba Cloud Linux 4.19
	NoBurstCounters bool // 5.14 and 5.15: burst without nr_bursts
	DividesBurst    bool // v2 from 5.14 to 6.9: a write of cpu.max divides the burst by 1000 (49217ea147df mends it)
	CPUSets         bool // there is a cpuset controller; on v1 a hierarchy of its own
	InheritsAgain   bool // v2: a group with tasks accepts an empty list of CPUs again, which most kernels refuse
	Start           time.Time
	Seed            uint64
}

// Kernel is the machine. It is not safe for concurrent use.
type Kernel struct {
	// Fault, when set, is called before every ReadFile, WriteFile and Mkdir; op is "read", "write" or "mkdir". An error
	// is returned to the caller and nothing is done. It may change the machine (ForeignWrite, RemoveGroup, Advance) or
	// panic.
	Fault func(op, name string, data []byte) error
	// OnThrottle, when set, is called with each throttle as it begins. It may not call Advance.
	OnThrottle func(bandwidth.Throttle)
	// Ignores has a write that changes no quota, period or burst do nothing. No kernel does so yet; a patch was posted.
	Ignores bool

	config  Config
	now     time.Duration // since config.Start
	inode   uint64
	pid     int
	root    *group
	byPath  map[string]*group
	order   []*group // all groups, oldest first: a parent stands before its children
	actions []action
	acting  bool
	num     int64 // every running thread runs at num/den of a CPU
	den     int64
	writes  []Write
	periods map[string][]Period
	moved   map[int]*group // v1: tasks that are elsewhere in the cpuset hierarchy
}

// group is one control group.
type group struct {
	id       workload.ID
	parent   *group
	children []*group // by name
	acct     bool     // v1: it is in the cpuacct hierarchy too
	only     bool     // v1: it is in the cpuset hierarchy only
	tasks    []int
	weight   int64
	idle     bool
	cpus     cpu.Set       // of cpuset.cpus
	usage    time.Duration // with all groups below
	source

	pool   bandwidth.Pool
	expiry time.Duration // when the period timer fires next, or fired last when it is stopped
	spent  time.Duration // used since the period began, while limited

	running  int64 // threads that run here and below
	standing int64 // CPUs that are throttled, because this pool is empty
	stuck    int64 // CPUs' worth of threads here and below that a throttle here or above stops
	stood    booking
	wall     time.Duration // for which it was throttled, however many CPUs were
}

// booking is a throttled time: the kernel counts it when the throttle ends.
type booking struct{ pending, booked time.Duration }

func (b *booking) book() { b.booked, b.pending = b.booked+b.pending, 0 }

type action struct {
	at time.Duration
	do func()
}

// New makes a machine without groups.
func New(c Config) *Kernel {
	c.CPUs = max(1, c.CPUs)
	if c.Version == 0 {
		c.Version = 2
	}
	if c.Start.IsZero() {
		c.Start = time.Unix(1_700_000_000, 0)
	}
	k := &Kernel{config: c, pid: 1000, byPath: map[string]*group{}, periods: map[string][]Period{},
		moved: map[int]*group{}}
	k.root = k.add("/", nil)
	k.root.tasks = []int{1}
	return k
}

// AddGroup makes a group, and its parents where they are missing. On v1 it is in both hierarchies.
func (k *Kernel) AddGroup(name string) {
	name = path.Clean("/" + name)
	if k.byPath[name] != nil {
		return
	}
	k.AddGroup(path.Dir(name))
	k.add(name, k.byPath[path.Dir(name)])
}

// RemoveGroup ends a group: its tasks, and all groups below it. Added again, it is another one with another inode.
func (k *Kernel) RemoveGroup(name string) {
	g := k.must(name)
	for len(g.children) > 0 {
		k.RemoveGroup(g.children[0].id.Path)
	}
	same := func(o *group) bool { return o == g }
	k.order = slices.DeleteFunc(k.order, same)
	g.parent.children = slices.DeleteFunc(g.parent.children, same)
	delete(k.byPath, g.id.Path)
}

func (k *Kernel) add(name string, parent *group) *group {
	k.inode += 64 // the numbers between are those of its files
	g := &group{
		id:     workload.ID{Path: name, Inode: k.inode},
		parent: parent,
		acct:   true,
		weight: k.defaultWeight(),
		pool:   bandwidth.New(),
	}
	g.rng = k.rand(fmt.Sprintf("%s %d", name, k.inode))
	g.expiry = time.Duration(g.rng.Int64N(int64(cpu.DefaultPeriod)))
	g.next.At = never
	if k.config.Version == 1 || parent == nil {
		g.cpus = k.all()
	}
	if parent != nil {
		if k.config.Version == 1 {
			g.cpus = parent.cpus
		}
		parent.children = append(parent.children, g)
		slices.SortFunc(parent.children, func(a, b *group) int { return strings.Compare(a.id.Path, b.id.Path) })
	}
	k.byPath[name] = g
	k.order = append(k.order, g)
	return g
}

// rand is a stream of its own for each purpose, so that one more group changes nothing for the others.
func (k *Kernel) rand(purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(k.config.Seed, h.Sum64()))
}

// SetTasks puts n threads of one process into a group that need not be runnable: an idle container. SetLoad
// does so for its threads by itself.
func (k *Kernel) SetTasks(name string, n int) {
	g := k.must(name)
	g.tasks = g.tasks[:0:0]
	for range n {
		k.pid++
		g.tasks = append(g.tasks, k.pid)
	}
}

// SetExpiry has a group's period timer fire at this instant, and whole periods before and after it.
func (k *Kernel) SetExpiry(name string, at time.Time) {
	g := k.must(name)
	period := g.pool.Bandwidth().Period
	g.expiry = k.now + (at.Sub(k.config.Start)-k.now)%period
	if g.expiry <= k.now {
		g.expiry += period
	}
}

// Scale has the kernel double a group's period, quota and burst, as if the period's timer could not keep up.
func (k *Kernel) Scale(name string) { k.must(name).pool.Scale() }

// SetLoad replaces the load of a group's own threads, from now on; unfinished jobs are dropped.
func (k *Kernel) SetLoad(name string, load Load) {
	g := k.must(name)
	g.source.start(load, k.now)
	if len(g.tasks) < load.Threads {
		k.SetTasks(name, load.Threads)
	}
}

// Now is the machine's time.
func (k *Kernel) Now() time.Time { return k.config.Start.Add(k.now) }

// At does something when the machine's time gets there, before anything else that is due then: a foreign write, a
// container that starts or ends, another load. It may not call Advance.
func (k *Kernel) At(t time.Time, do func()) {
	at := max(t.Sub(k.config.Start), k.now)
	i := sort.Search(len(k.actions), func(i int) bool { return k.actions[i].at > at })
	k.actions = slices.Insert(k.actions, i, action{at, do})
}

// Online is the number of online CPUs.
func (k *Kernel) Online() int { return k.config.CPUs }

// Topology is of equal CPUs: nothing else is known of them.
func (k *Kernel) Topology() cpu.Topology {
	var t cpu.Topology
	for c := range k.config.CPUs {
		t.Places = append(t.Places, cpu.Place{CPU: c, Core: c, Capacity: 1})
	}
	return t
}

// Busy is the CPU time used on the whole machine so far.
func (k *Kernel) Busy() time.Duration { return k.root.usage }

func (k *Kernel) rules() bandwidth.Rules {
	return bandwidth.Rules{Version: k.config.Version, BurstAboveQuota: k.config.BurstAboveQuota}
}

// must finds a group that a test's script has made.
func (k *Kernel) must(name string) *group {
	g := k.byPath[path.Clean("/"+name)]
	if g == nil {
		panic(fmt.Sprintf("sim: no group %q", name))
	}
	return g
}
