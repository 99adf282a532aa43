// Package leftover finds what an agent that no longer runs has left in the kernel's files, by its journal.
// It writes nothing.
package leftover

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// Others lists values of ours in other files than those of limits.
func Others(w *apply.Writer, entries []journal.Entry) []string {
	var list []string
	for _, e := range entries {
		if e.Knob == plan.Quota || e.Knob == plan.Burst {
			continue
		}
		if held, ours := w.InFile(e); ours {
			list = append(list, fmt.Sprintf(report.ProblemLeft, e.Path, e.Knob, held, e.Target()))
		}
	}
	if s, there := w.Shielded(); there {
		list = append(list, fmt.Sprintf(report.ProblemLeftShield, s.Group, s.Tasks))
	}
	return list
}

// ErrGone says that a group of the journal is not there any more.
var ErrGone = errors.New("the group is gone: nothing is left to put back")

// Bandwidth is that of a group, as long as it is the one of the journal.
func Bandwidth(tree *cgroup.Tree, id workload.ID) (cpu.Bandwidth, error) {
	inode, err := tree.Inode(id.Path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && inode != id.Inode {
		return cpu.Bandwidth{}, ErrGone
	}
	if err != nil {
		return cpu.Bandwidth{}, err
	}
	return tree.Bandwidth(id.Path)
}

// Containers makes one container of the journal's entries of a group, with the present values of the kernel's files.
func Containers(entries []journal.Entry, read func(workload.ID) (cpu.Bandwidth, error)) []report.Container {
	var list []report.Container
	at := map[workload.ID]int{}
	for _, e := range entries {
		if e.Knob != plan.Quota && e.Knob != plan.Burst {
			continue
		}
		i, known := at[e.ID]
		if !known {
			i = len(list)
			at[e.ID] = i
			list = append(list, unchanged(e.ID, read))
		}
		c := &list[i]
		e = e.In(cpu.Bandwidth{Quota: c.Quota.InForce, Period: c.Period, Burst: c.Burst.InForce})
		if e.Knob == plan.Quota {
			c.Quota = knobOf(e, c.Quota)
			c.Limit, _ = e.Target().Time() // knobOf says when the journal's value is no time
		} else {
			c.Burst = knobOf(e, c.Burst)
		}
	}
	return list
}

// unchanged is a group as the kernel has it.
func unchanged(id workload.ID, read func(workload.ID) (cpu.Bandwidth, error)) report.Container {
	b, err := read(id)
	as := func(d time.Duration) report.Knob {
		k := report.Knob{Original: d, Requested: d, InForce: d}
		if err != nil {
			k.Problem = err.Error()
		}
		return k
	}
	return report.Container{Cgroup: id.Path, Name: id.Path, Limit: b.Quota, LimitFrom: "journal", Period: b.Period,
		Quota: as(b.Quota), Burst: as(b.Burst), Why: "left by an agent that no longer runs"}
}

// knobOf lays the journal's entry over what the kernel has.
func knobOf(e journal.Entry, now report.Knob) report.Knob {
	var err1, err2 error
	k := now
	k.Since = &e.Since
	k.Original, err1 = e.Original.Time()
	k.Requested, err2 = e.Last.Time()
	if err := errors.Join(err1, err2); err != nil {
		k.Problem = fmt.Sprintf(report.ProblemJournal, err)
		return k
	}
	if k.Problem != "" {
		return k
	}
	k.Changed = e.Ours(plan.Time(now.InForce)) && plan.Time(now.InForce) != e.Target()
	if !k.Changed && now.InForce != k.Original && plan.Time(now.InForce) != e.Target() {
		k.Problem = report.ProblemNotOurs
	}
	return k
}

// Deviations are the changes that bring every group to its declared limit, in order.
func Deviations(tree *cgroup.Tree, pods []workload.Pod) []plan.Change {
	var changes []plan.Change
	for _, p := range pods {
		changes = append(changes, deviation(tree, p.ID, p.Declared)...)
		for _, c := range p.Containers {
			changes = append(changes, deviation(tree, c.ID, c.Declared)...)
		}
	}
	plan.Order(changes)
	return changes
}

// deviation is the change that brings a group to its declared limit.
func deviation(tree *cgroup.Tree, id workload.ID, declared *workload.Declared) []plan.Change {
	if declared == nil || id.Path == "" {
		return nil
	}
	disk, err := tree.Bandwidth(id.Path)
	if err != nil {
		return nil
	}
	want := declared.Bandwidth.Over(disk.Period)
	var changes []plan.Change
	why := "declared by " + declared.Source
	if disk.Quota != want {
		changes = append(changes, plan.Change{Cgroup: id, Knob: plan.Quota, From: plan.Time(disk.Quota),
			To: plan.Time(want), Why: why})
	}
	if disk.Burst > want {
		changes = append(changes, plan.Change{Cgroup: id, Knob: plan.Burst, From: plan.Time(disk.Burst),
			To: plan.Time(0), Why: why})
	}
	return changes
}
