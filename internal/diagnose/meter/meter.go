// Package meter measures, with programs in the kernel (internal/probe/runq), what the threads of containers do: run, or
// wait for a CPU, and behind whom.
//
// Approach: a Meter numbers the groups of the node for the programs, keeps an account (internal/diagnose) of each group
// that is measured, and knows the groups beside them by name. Window is one measurement (`plimsoll diagnose`), Waits
// measures beside an agent (`plimsoll run --waits`), and Uncounted gives the CPU time of
// groups that no counter of the kernel has.
//
// Known limits: a group that comes counts for the group above it until it is searched for, at most a second later.
package meter

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/diagnose"
	"plimsoll/internal/hint"
	"plimsoll/internal/probe/programs"
	"plimsoll/internal/probe/runq"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
	"plimsoll/internal/sysfs"
)

// Meter measures what the threads of some containers do, and knows the groups around them by name.
type Meter struct {
	tree      *cgroup.Tree
	probe     waitPrograms
	online    cpu.Set
	names     map[runq.Slot]report.Container
	seen      map[uint64]bool // groups that have a number, by inode
	opaque    map[string]bool // containers: groups inside are part of them
	known     map[string]report.Container
	subjects  []*subject
	most      int  // groups that have a number, before what is left is for subjects alone
	tableFull bool // the table of groups is full, for all or for neighbours
	counted   bool // the kernel measures what the programs cost
	unread    int  // readings that were given up
}

// waitPrograms are those of package runq.
type waitPrograms interface {
	Set(g runq.Group) (runq.Slot, error)
	Forget(inode uint64) error
	Start() error
	Read(slot runq.Slot, within time.Duration) (runq.Sums, error)
	Pairs() ([]runq.Pair, error)
	Lengths(class runq.Class) ([runq.Buckets]int64, error)
	Lost() (tasks, pairs int64)
	Missed() int64
	Separates() (irq, steal bool)
	Cost() ([]programs.Cost, error)
	Close() error
}

// subject is a container that is diagnosed.
type subject struct {
	container report.Container
	slot      runq.Slot
	inode     uint64
	rank      strategy.Rank
	cpus      cpu.Set // that it may use
	account   diagnose.Account
	last      runq.Sums
	begin     map[runq.Slot]runq.Pair // the pairs of waits before the account began
	minute    report.Waited           // the account as the present minute of the clock began
}

// mostGroups have a number at a time, of few subjects.
const mostGroups = 4096

// Slice is how often a shortfall is taken: the usual period of a limit.
const Slice = 100 * time.Millisecond

// Open loads the programs, with a count of what they cost where that is allowed, and numbers the groups: subjects are
// measured, known are containers beside them.
func Open(tree *cgroup.Tree, h *sysfs.Host, subjects, known []report.Container) (*Meter, error) {
	m, err := open(tree, h, subjects, known, runq.Options{Stats: true})
	if errors.Is(err, programs.ErrUncounted) {
		m, err = open(tree, h, subjects, known, runq.Options{})
	}
	return m, err
}

// Close removes the programs.
func (m *Meter) Close() error { return m.probe.Close() }

// open loads the programs and numbers the groups: subjects are measured, known are containers beside them.
func open(tree *cgroup.Tree, h *sysfs.Host, subjects, known []report.Container, options runq.Options) (*Meter, error) {
	online, err := h.Online()
	if err != nil {
		return nil, err
	}
	if topology, err := h.Topology(); err == nil { // without it nothing is said of siblings
		options.Siblings = topology.Siblings()
	}
	options.Groups = max(mostGroups, 2*len(subjects))
	probe, err := runq.Open(options)
	if err != nil {
		return nil, err
	}
	m := newMeter(tree, probe, options)
	m.online = online
	if err := errors.Join(m.Follow(subjects, known), m.probe.Start()); err != nil {
		return nil, errors.Join(err, m.probe.Close())
	}
	return m, nil
}

// newMeter numbers no group yet.
func newMeter(tree *cgroup.Tree, probe waitPrograms, options runq.Options) *Meter {
	return &Meter{tree: tree, probe: probe, most: options.Groups - options.Groups/4, counted: options.Stats,
		names: map[runq.Slot]report.Container{}, seen: map[uint64]bool{}, opaque: map[string]bool{},
		known: map[string]report.Container{}}
}

// Follow adds new subjects, drops those that are gone, and numbers the groups beside them. The error
// is of a subject that cannot be added.
func (m *Meter) Follow(subjects, known []report.Container) error {
	for _, c := range known {
		m.opaque[c.Cgroup] = true
		m.known[c.Cgroup] = c
	}
	var list []error
	there := map[string]bool{}
	for _, c := range subjects {
		there[c.Cgroup] = true
		inode, err := m.tree.Inode(c.Cgroup)
		switch {
		case err == nil:
			err = m.take(c, inode, strategy.Neutral)
		case errors.Is(err, fs.ErrNotExist):
			err = hint.With(fmt.Errorf("there is no control group %s", c.Cgroup),
				"it has just ended, or --cgroup-root is not the agent's")
		}
		list = append(list, err)
	}
	m.keep(there)
	m.numberNeighbours()
	return errors.Join(list...)
}

// take numbers a container that is measured, or updates a numbered one.
func (m *Meter) take(c report.Container, inode uint64, rank strategy.Rank) error {
	cpus := m.tree.AllowedCPUs(c.Cgroup, m.online)
	slot, err := m.set(c, runq.Group{Inode: inode, CPUs: cpus, Watched: true, Class: ranked()[rank]})
	if err != nil {
		return err
	}
	m.opaque[c.Cgroup] = true
	s := m.subject(c.Cgroup, inode)
	if s == nil {
		s = &subject{inode: inode}
		m.subjects = append(m.subjects, s)
	}
	s.container, s.slot, s.rank, s.cpus, s.account.Reserved = c, slot, rank, cpus, c.Request
	return nil
}

// subject is nil where the group is not measured.
func (m *Meter) subject(cgroup string, inode uint64) *subject {
	for _, s := range m.subjects {
		if s.inode == inode && s.container.Cgroup == cgroup {
			return s
		}
	}
	return nil
}

// keep lets go of the subjects that are not there any more.
func (m *Meter) keep(there map[string]bool) {
	m.subjects = slices.DeleteFunc(m.subjects, func(s *subject) bool {
		now, err := m.tree.Inode(s.container.Cgroup)
		gone := err != nil || now != s.inode || !there[s.container.Cgroup]
		if gone && !there[s.container.Cgroup] {
			delete(m.opaque, s.container.Cgroup)
		}
		return gone
	})
}

// cpusEvery is in how many looks the CPUs of each container are read again: that takes a file of each group above it.
const cpusEvery = 60

// taken says whether the programs have the present facts about a container. Its CPUs are compared in one look of many.
func (m *Meter) taken(c report.Container, inode uint64, rank strategy.Rank, look uint64) bool {
	s := m.subject(c.Cgroup, inode)
	if s == nil || s.container.Name != c.Name || s.container.Request != c.Request || s.rank != rank {
		return false
	}
	return (inode+look)%cpusEvery != 0 || s.cpus.Equal(m.tree.AllowedCPUs(c.Cgroup, m.online))
}

// set passes the facts about a group to the programs.
func (m *Meter) set(c report.Container, g runq.Group) (runq.Slot, error) {
	g.Request = c.Request
	slot, err := m.probe.Set(g)
	if err != nil {
		m.tableFull = true
		return runq.Others, err
	}
	if !m.seen[g.Inode] {
		for _, s := range m.subjects {
			delete(s.begin, slot) // was with the group that had the number before
		}
	}
	m.seen[g.Inode], m.names[slot] = true, c
	return slot, nil
}

// read reads each subject, in half a slice all together. One whose sums are written all the time is left out: they only
// grow, and the next reading has what this one misses.
func (m *Meter) read(took func(*subject, runq.Sums)) error {
	end := time.Now().Add(Slice / 2)
	for i, s := range m.subjects {
		sums, err := m.probe.Read(s.slot, time.Until(end)/time.Duration(len(m.subjects)-i))
		if errors.Is(err, io.ErrNoProgress) {
			m.unread++
			continue
		}
		if err != nil {
			return err
		}
		took(s, sums)
	}
	return nil
}

// add reads each subject into its account.
func (m *Meter) add() error {
	return m.read(func(s *subject, sums runq.Sums) { s.account.Add(readingOf(sums)) })
}

func readingOf(s runq.Sums) diagnose.Reading {
	return diagnose.Reading{At: s.At, Running: s.Running, Waiting: s.Waiting, Beside: total(s.Beside[:]),
		Parts: diagnose.Parts{Own: s.Own, Above: s.Above, Behind: s.Behind, Idle: s.Idle, Self: s.Self,
			Unnamed: s.Unnamed,
			Lost:    diagnose.Lost{IRQ: s.WaitsIRQ, Steal: s.WaitsSteal}},
		Lost: diagnose.Lost{IRQ: s.IRQ, Steal: s.Steal}}
}

func total(list []time.Duration) (sum time.Duration) {
	for _, d := range list {
		sum += d
	}
	return sum
}

// start restarts all accounts.
func (m *Meter) start() error {
	pairs, err := m.pairs()
	if err != nil {
		return err
	}
	for _, s := range m.subjects {
		s.account = diagnose.Account{Reserved: s.container.Request}
		s.begin = pairs[s.slot]
	}
	return m.add()
}

// pairs are those of all groups, by the group that waits.
func (m *Meter) pairs() (map[runq.Slot]map[runq.Slot]runq.Pair, error) {
	list, err := m.probe.Pairs()
	if err != nil {
		return nil, err
	}
	return byWaiter(list), nil
}

// describe puts the accounts into words.
func (m *Meter) describe() ([]report.Diagnosed, error) {
	pairs, err := m.pairs()
	if err != nil {
		return nil, err
	}
	list := []report.Diagnosed{}
	for _, s := range m.subjects {
		behind := m.behind(pairs[s.slot], s.begin)
		own, above := m.limits(s.container.Cgroup)
		list = append(list, diagnose.Describe(diagnose.Container{Name: s.container.Name, Cgroup: s.container.Cgroup,
			Reserved: s.container.Request, Limit: own, PodLimit: above}, s.account.Split(), behind))
	}
	diagnose.Rank(list)
	return list, nil
}

// behind says whom the pairs of a group are with.
func (m *Meter) behind(pairs, before map[runq.Slot]runq.Pair) []diagnose.Behind {
	var list []diagnose.Behind
	for runner, p := range pairs {
		p, who := less(p, before[runner]), m.who(runner)
		list = append(list, diagnose.Behind{Name: who.Name, Cgroup: who.Cgroup, Kernel: runner == runq.Kernel,
			Time: p.Behind, Phantom: p.Phantom, Forced: p.Forced, Waking: p.Waking})
	}
	return list
}

func (m *Meter) who(slot runq.Slot) report.Container {
	switch slot {
	case runq.Kernel:
		return report.Container{Name: "kernel threads"}
	case runq.Others:
		return report.Container{Name: "processes outside of any group", Cgroup: "/"}
	}
	return m.names[slot]
}

// limits are the group's own, and the lowest above it, in CPUs.
func (m *Meter) limits(group string) (own, above float64) {
	own, above = m.limit(group), math.Inf(1)
	for group = path.Dir(group); group != "/" && group != "."; group = path.Dir(group) {
		above = min(above, m.limit(group))
	}
	return own, above
}

func (m *Meter) limit(group string) float64 {
	b, err := m.tree.Bandwidth(group)
	if err != nil {
		return math.Inf(1) // the root has none, and a group that is gone neither
	}
	return b.CPUs()
}

// overhead is what the measurement has cost since another reading of it.
func (m *Meter) overhead() (report.Overhead, error) {
	costs, err := m.probe.Cost()
	if err != nil {
		return report.Overhead{}, err
	}
	h := report.Overhead{Uncounted: !m.counted}
	for _, c := range costs {
		h.Programs += c.Total
		if c.Program == runq.Switch {
			h.Switches, h.PerSwitch = c.Runs, c.Total // the whole, until less divides it
		}
	}
	h.Lost, h.Unpaired = m.probe.Lost()
	self, err := sysfs.NewHost("/").Self()
	if err != nil {
		return report.Overhead{}, fmt.Errorf("read what this process has used: %w", err)
	}
	h.Plimsoll = self.CPU
	return h, nil
}

// spent is the overhead between two readings, on a number of CPUs.
func spent(after, before report.Overhead, elapsed time.Duration, cpus int) report.Overhead {
	h := report.Overhead{Uncounted: after.Uncounted, Switches: after.Switches - before.Switches,
		Programs: after.Programs - before.Programs, Plimsoll: after.Plimsoll - before.Plimsoll,
		Lost: after.Lost - before.Lost, Unpaired: after.Unpaired - before.Unpaired}
	if h.Switches > 0 {
		h.PerSwitch = (after.PerSwitch - before.PerSwitch) / time.Duration(h.Switches)
	}
	if elapsed > 0 && cpus > 0 {
		h.Share = (h.Programs + h.Plimsoll).Seconds() / (elapsed.Seconds() * float64(cpus))
	}
	return h
}
