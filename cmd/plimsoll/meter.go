package main

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/diagnose"
	"plimsoll/internal/probe/runq"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
	"plimsoll/internal/sysfs"
)

// meter measures what the threads of some containers do, and knows the groups around them by name.
type meter struct {
	tree      *cgroup.Tree
	probe     *runq.Probe
	online    cpu.Set
	names     map[runq.Slot]report.Container
	seen      map[uint64]bool // groups that have a number, by inode
	opaque    map[string]bool // containers: groups inside are part of them
	known     map[string]report.Container
	subjects  []*subject
	paired    pairs
	tableFull bool          // the table of groups is full
	counted   bool          // the kernel measures what the programs cost
	requests  *requestMeter // nil: requests are not measured
}

// subject is a container that is diagnosed.
type subject struct {
	container report.Container
	slot      runq.Slot
	inode     uint64
	rank      strategy.Rank
	account   diagnose.Account
	last      runq.Sums
	begin     map[runq.Slot]runq.Pair // the pairs of waits before the account began
}

// slice is how often a shortfall is taken: the usual period of a limit.
const slice = 100 * time.Millisecond

// newMeter loads the programs and numbers the groups: subjects are measured, known are containers beside them.
func newMeter(tree *cgroup.Tree, h *sysfs.Host, subjects, known []report.Container, options runq.Options) (*meter, error) {
	online, err := h.Online()
	if err != nil {
		return nil, err
	}
	if topology, err := h.Topology(); err == nil { // without it nothing is said of siblings
		options.Siblings = siblingsOf(topology)
	}
	options.Groups = max(4096, 2*len(subjects))
	o := &meter{tree: tree, online: online, names: map[runq.Slot]report.Container{}, seen: map[uint64]bool{}, opaque: map[string]bool{},
		known: map[string]report.Container{}, counted: options.Stats}
	if o.probe, err = runq.Open(options); err != nil {
		return nil, err
	}
	if err := errors.Join(o.follow(subjects, known), o.probe.Start()); err != nil {
		return nil, errors.Join(err, o.probe.Close())
	}
	return o, nil
}

// follow adds new subjects, drops those that are gone, and numbers the groups beside them. The error
// is of a subject that cannot be added.
func (o *meter) follow(subjects, known []report.Container) error {
	for _, c := range known {
		o.opaque[c.Cgroup] = true
		o.known[c.Cgroup] = c
	}
	var list []error
	there := map[string]bool{}
	for _, c := range subjects {
		there[c.Cgroup] = true
		inode, err := o.tree.Inode(c.Cgroup)
		if err == nil {
			err = o.take(c, inode, strategy.Neutral)
		}
		list = append(list, err)
	}
	o.keep(there)
	o.numberNeighbours()
	return errors.Join(list...)
}

// take numbers a container that is measured, or updates a numbered one.
func (o *meter) take(c report.Container, inode uint64, rank strategy.Rank) error {
	slot, err := o.set(c, inode, true, ranked()[rank])
	if err != nil {
		return err
	}
	o.opaque[c.Cgroup] = true
	s := o.subject(c.Cgroup, inode)
	if s == nil {
		s = &subject{inode: inode}
		o.subjects = append(o.subjects, s)
	}
	s.container, s.slot, s.rank, s.account.Reserved = c, slot, rank, c.Request
	return nil
}

// subject is nil where the group is not measured.
func (o *meter) subject(cgroup string, inode uint64) *subject {
	for _, s := range o.subjects {
		if s.inode == inode && s.container.Cgroup == cgroup {
			return s
		}
	}
	return nil
}

// keep lets go of the subjects that are not there any more.
func (o *meter) keep(there map[string]bool) {
	o.subjects = slices.DeleteFunc(o.subjects, func(s *subject) bool {
		now, err := o.tree.Inode(s.container.Cgroup)
		gone := err != nil || now != s.inode || !there[s.container.Cgroup]
		if gone && !there[s.container.Cgroup] {
			delete(o.opaque, s.container.Cgroup)
		}
		return gone
	})
}

// siblingsOf pairs the hardware threads of each core.
func siblingsOf(t cpu.Topology) map[int]int {
	of := map[int]int{}
	for _, a := range t.Places {
		for _, b := range t.Places {
			if _, there := of[a.CPU]; !there && a.CPU != b.CPU && a.Core == b.Core {
				of[a.CPU] = b.CPU
			}
		}
	}
	return of
}

// set passes the facts about a group to the programs.
func (o *meter) set(c report.Container, inode uint64, watched bool, class runq.Class) (runq.Slot, error) {
	slot, err := o.probe.Set(runq.Group{Inode: inode, CPUs: allowed(o.tree, o.online, c.Cgroup), Request: c.Request, Watched: watched, Class: class})
	if err != nil {
		o.tableFull = true
		return runq.Others, err
	}
	if _, had := o.names[slot]; had && !o.seen[inode] {
		o.paired.reuse(slot)
	}
	o.seen[inode], o.names[slot] = true, c
	return slot, nil
}

// allowed are the CPUs of the nearest group that is bound to some.
func allowed(tree *cgroup.Tree, online cpu.Set, group string) cpu.Set {
	for ; group != "/" && group != "."; group = path.Dir(group) {
		if set, err := tree.CPUs(group); err == nil && len(set) > 0 {
			return set.And(online)
		}
	}
	return online
}

// numberNeighbours numbers the groups beside the subjects, and frees the numbers of those that are gone: a subject that
// waited for such a group still knows its name.
func (o *meter) numberNeighbours() {
	there := map[uint64]bool{}
	o.walk("/", there)
	for _, s := range o.subjects {
		there[s.inode] = true // its sums are still to be read
	}
	for inode := range o.seen {
		if !there[inode] && o.probe.Forget(inode) == nil {
			delete(o.seen, inode)
		}
	}
}

func (o *meter) walk(group string, there map[uint64]bool) {
	children, err := o.tree.Children(group)
	if err != nil {
		return // it is gone
	}
	for _, c := range children {
		inode, err := o.tree.Inode(c)
		if err != nil {
			continue
		}
		there[inode] = true
		if !o.seen[inode] {
			one, is := o.known[c]
			if !is {
				one = report.Container{Cgroup: c, Name: c}
			}
			_, _ = o.set(one, inode, false, 0) // a full table is noted
		}
		if !o.opaque[c] {
			o.walk(c, there)
		}
	}
}

// read reads each subject.
func (o *meter) read() error {
	for _, s := range o.subjects {
		sums, err := o.probe.Read(s.slot)
		if err != nil {
			return err
		}
		s.account.Add(readingOf(sums))
	}
	return nil
}

func readingOf(s runq.Sums) diagnose.Reading {
	return diagnose.Reading{At: s.At, Running: s.Running, Waiting: s.Waiting, Beside: total(s.Beside[:]),
		Parts: diagnose.Parts{Own: s.Own, Above: s.Above, Behind: s.Behind, Idle: s.Idle, Self: s.Self, Unnamed: s.Unnamed,
			Lost: diagnose.Lost{IRQ: s.WaitsIRQ, Steal: s.WaitsSteal}},
		Lost: diagnose.Lost{IRQ: s.IRQ, Steal: s.Steal}}
}

func total(list []time.Duration) (sum time.Duration) {
	for _, d := range list {
		sum += d
	}
	return sum
}

// start restarts all accounts.
func (o *meter) start() error {
	pairs, err := o.pairs()
	if err != nil {
		return err
	}
	for _, s := range o.subjects {
		s.account = diagnose.Account{Reserved: s.container.Request}
		s.begin = pairs[s.slot]
	}
	return errors.Join(o.requests.begin(), o.read())
}

// pairs are those of all groups, by the group that waits.
func (o *meter) pairs() (map[runq.Slot]map[runq.Slot]runq.Pair, error) {
	list, err := o.probe.Pairs()
	if err != nil {
		return nil, err
	}
	return o.paired.since(list), nil
}

// describe puts the accounts into words.
func (o *meter) describe() ([]report.Diagnosed, error) {
	pairs, err := o.pairs()
	if err != nil {
		return nil, err
	}
	list := []report.Diagnosed{}
	for _, s := range o.subjects {
		behind := o.behind(pairs[s.slot], s.begin)
		own, above := o.limits(s.container.Cgroup)
		d := diagnose.Describe(diagnose.Container{Name: s.container.Name, Cgroup: s.container.Cgroup, Reserved: s.container.Request,
			Limit: own, PodLimit: above}, s.account.Split(), behind)
		if d.Requests, err = o.requests.of(s.container.Cgroup); err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	diagnose.Rank(list)
	return list, nil
}

// behind says whom the pairs of a group are with.
func (o *meter) behind(pairs, before map[runq.Slot]runq.Pair) []diagnose.Behind {
	var list []diagnose.Behind
	for runner, p := range pairs {
		p, who := less(p, before[runner]), o.who(runner)
		list = append(list, diagnose.Behind{Name: who.Name, Cgroup: who.Cgroup, Kernel: runner == runq.Kernel, Time: p.Behind,
			Phantom: p.Phantom, Forced: p.Forced, Waking: p.Waking})
	}
	return list
}

func (o *meter) who(slot runq.Slot) report.Container {
	switch slot {
	case runq.Kernel:
		return report.Container{Name: "kernel threads"}
	case runq.Others:
		return report.Container{Name: "processes outside of any group", Cgroup: "/"}
	}
	return o.names[slot]
}

// limits are the group's own, and the lowest above it, in CPUs.
func (o *meter) limits(group string) (own, above float64) {
	own, above = o.limit(group), math.Inf(1)
	for group = path.Dir(group); group != "/" && group != "."; group = path.Dir(group) {
		above = min(above, o.limit(group))
	}
	return own, above
}

func (o *meter) limit(group string) float64 {
	b, err := o.tree.Bandwidth(group)
	if err != nil {
		return math.Inf(1) // the root has none, and a group that is gone neither
	}
	return b.CPUs()
}

// overhead is what the measurement has cost since another reading of it.
func (o *meter) overhead() (report.Overhead, error) {
	costs, err := o.probe.Cost()
	more, err2 := o.requests.cost()
	if err := errors.Join(err, err2); err != nil {
		return report.Overhead{}, err
	}
	h := report.Overhead{Uncounted: !o.counted}
	for _, c := range more {
		h.Programs += c.Total
	}
	for _, c := range costs {
		h.Programs += c.Total
		if c.Program == runq.Switch {
			h.Switches, h.PerSwitch = c.Runs, c.Total // the whole, until less divides it
		}
	}
	h.Lost, h.Unpaired = o.probe.Lost()
	self, err := sysfs.NewHost("/").Self()
	if err != nil {
		return report.Overhead{}, fmt.Errorf("read what this process has used: %w", err)
	}
	h.Plimsoll = self.CPU
	return h, nil
}

// spent is the overhead between two readings, on a number of CPUs.
func spent(after, before report.Overhead, elapsed time.Duration, cpus int) report.Overhead {
	h := report.Overhead{Uncounted: after.Uncounted, Switches: after.Switches - before.Switches, Programs: after.Programs - before.Programs, Plimsoll: after.Plimsoll - before.Plimsoll,
		Lost: after.Lost - before.Lost, Unpaired: after.Unpaired - before.Unpaired}
	if h.Switches > 0 {
		h.PerSwitch = (after.PerSwitch - before.PerSwitch) / time.Duration(h.Switches)
	}
	if elapsed > 0 && cpus > 0 {
		h.Share = (h.Programs + h.Plimsoll).Seconds() / (elapsed.Seconds() * float64(cpus))
	}
	return h
}
