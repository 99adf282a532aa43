package apply

import (
	"errors"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Some writes change another file as well, and the journal must have the original value of that file, too.
//
// Setting cpu.idle forces the weight to its minimum and locks it, and clearing it sets the weight to the default: the
// former weight is lost (kernel/sched/fair.c, sched_group_set_idle). So a change that sets idle claims the weight, and
// one that clears idle restores it.
//
// Writing cpu.max divides the burst by 1000 on kernels without commit 49217ea147df. cgroup.Tree repairs that at once,
// but a crash may come between. So a change of the quota on v2 claims the burst, if there is one.

// companion is the other knob that a change may affect.
func (w *Writer) companion(c plan.Change) (knob plan.Knob, ok bool) {
	switch {
	case c.Knob == plan.Idle:
		return plan.Weight, true
	case c.Knob == plan.Quota && w.tree.Version() == cgroup.V2:
		return plan.Burst, true
	}
	return "", false
}

// claimCompanion claims the other knob that a change may affect.
func (w *Writer) claimCompanion(c plan.Change) error {
	claims, err := w.companionClaims(c)
	if len(claims) == 0 {
		return err
	}
	return w.journal.Claim(claims...)
}

// companionClaims is the claim of that knob, if the journal lacks it.
func (w *Writer) companionClaims(c plan.Change) ([]journal.Entry, error) {
	knob, ok := w.companion(c)
	if !ok {
		return nil, nil
	}
	if _, claimed := w.journal.Entry(c.Cgroup, knob); claimed {
		return nil, nil
	}
	held, err := w.look(c.Cgroup, knob)
	switch {
	case isGone(err), errors.Is(err, errNoFile), knob == plan.Burst && held == plan.Time(0):
		return nil, nil // there is nothing to change
	case err != nil:
		return nil, err
	}
	return []journal.Entry{w.claimOf(c.Cgroup, knob, held)}, nil
}

// unclaimCompanion ends such a claim when the change has ended, unless the file may hold another value than the
// original.
func (w *Writer) unclaimCompanion(c plan.Change) error {
	knob, ok := w.companion(c)
	if !ok {
		return nil
	}
	e, claimed := w.journal.Entry(c.Cgroup, knob)
	if !claimed {
		return nil
	}
	held, err := w.look(c.Cgroup, knob)
	if isGone(err) || errors.Is(err, errNoFile) || err == nil && held == Present(w.tree, e).Original {
		return w.journal.Done(c.Cgroup, knob)
	}
	return nil
}

// errIdle says why a weight cannot be written.
var errIdle = errors.New("cpu.idle is set, which locks the weight")

func (w *Writer) idle(id workload.ID) bool {
	idle, err := w.tree.Idle(id.Path)
	return err == nil && idle
}

// defaultWeight is the weight of a group after cpu.idle was cleared.
func defaultWeight(v cgroup.Version) plan.Value {
	if v == cgroup.V2 {
		return "100" // CGROUP_WEIGHT_DFL
	}
	return "1024" // NICE_0_LOAD
}

// clearIdle clears cpu.idle and gives the group the weight that it had before.
func (w *Writer) clearIdle(id workload.ID) error {
	weight, claimed := w.journal.Entry(id, plan.Weight)
	if !claimed {
		return w.tree.SetIdle(id.Path, false)
	}
	// The default is an intent too, because a crash may come before the weight is restored. A full disk is no reason to
	// leave the group idle.
	after := defaultWeight(w.tree.Version())
	_ = w.journal.Intend(id, plan.Weight, after)
	if err := w.tree.SetIdle(id.Path, false); err != nil {
		return err
	}
	if weight.Target() != after {
		if err := set(w.tree, id.Path, plan.Weight, weight.Target()); err != nil {
			return err
		}
	}
	return w.journal.Done(id, plan.Weight)
}

// ours says whether the value of the file is there because of us.
func (w *Writer) ours(e journal.Entry, held plan.Value) bool {
	return e.Ours(held) || w.divided(e, held) || w.shrunk(e, held) || Present(w.tree, e).Ours(held)
}

// isDivided says whether a burst is divided in the file.
func (w *Writer) isDivided(e journal.Entry) bool {
	if e.Knob != plan.Burst {
		return false
	}
	held, err := w.look(e.ID, e.Knob)
	return err == nil && w.divided(e, held)
}

// divided says whether a burst is one of those in the journal, divided by a write of cpu.max. Below a microsecond the
// result would be 0, which any program may have written.
func (w *Writer) divided(e journal.Entry, held plan.Value) bool {
	if e.Knob != plan.Burst || w.tree.Version() != cgroup.V2 || held == plan.Time(0) {
		return false
	}
	for _, v := range []plan.Value{e.Original, e.Prev, e.Last} {
		if d, err := v.Time(); err == nil && held == plan.Time((d/1000).Truncate(time.Microsecond)) {
			return true
		}
	}
	return false
}
