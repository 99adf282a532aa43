package agent

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// asked is what colocation asks of the agent.
type asked struct{ *Agent }

// Bandwidth is the group whose bandwidth a file is one of, if the group is looked after.
func (a asked) Bandwidth(key plan.Key) *observe.Group {
	if g := a.groups[key.ID]; key.Knob.OfBandwidth() && g != nil && g.Disk.Period > 0 {
		return g.Group.Group
	}
	return nil
}

// Outranked says whether something that goes before suppression is for the quota of a group: it is paused, its owner is about to
// resize it, or it has CPUs of its own.
func (a asked) Outranked(now time.Time, group string) bool {
	return a.Pauses.paused(group, now) || a.resizes.open(group, now) || a.reservations.shares[group].Unlimited
}

func (a asked) Topology() (on cpu.Topology, free bool, err error) {
	r := a.Reserving
	if r.Topology == nil || r.Rules.Policy != strategy.ReserveNone || a.reservations.active {
		return on, false, nil
	}
	on, err = r.Topology()
	return on, true, err
}

func (a asked) Saw(key plan.Key, held plan.Value, event ledger.Event) { a.noteSight(key, held, event) }

func (a asked) Stale(now time.Time) { a.markAllDue(now) }

func (a asked) Groups() map[workload.ID]*observe.Group { return a.reader.Groups() }

func (a asked) Adopt(id workload.ID, knob plan.Knob, held, base plan.Value) {
	a.sayJournal(a.Writer.Adopt(id, knob, held, base))
}

func (a asked) Forget(id workload.ID, knob plan.Knob) { a.sayJournal(a.Writer.Forget(id, knob)) }

// inodes are those of all groups.
func (a *Agent) inodes() []uint64 {
	list := make([]uint64, 0, len(a.groups))
	for id := range a.groups {
		list = append(list, id.Inode)
	}
	return list
}

// markAllDue has every group looked at: whether it is held at its limit is another question now.
func (a *Agent) markAllDue(now time.Time) {
	for _, g := range a.groups {
		g.Stale(now)
	}
}
