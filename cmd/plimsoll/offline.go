package main

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
	"plimsoll/internal/sysfs"
	"plimsoll/internal/task"
	"plimsoll/internal/workload"
)

// offlineStatus finds the values of ours that are still in the kernel's files although no agent runs.
func offlineStatus(g *globals, now time.Time) (report.Status, error) {
	state, err := journal.Load(g.stateDir)
	if err != nil {
		return report.Status{}, err
	}
	boot, err := journal.BootID()
	if err != nil {
		return report.Status{}, fmt.Errorf("read the boot ID: %w", err)
	}
	kernel, err := sysfs.NewHost("/").Release()
	if err != nil {
		return report.Status{}, err
	}
	s := report.Status{Schema: report.StatusSchema, Version: version, Now: now, Mode: report.Offline, Kernel: kernel,
		Cgroup: "?", Problems: state.Notes, Node: report.Node{State: "unknown"}}
	if len(state.Entries) > 0 && state.BootID != boot {
		s.Problems = append(s.Problems, "the journal is of an earlier boot: its control groups and their values are gone")
		return s, nil
	}
	if locked := g.holder(); locked != nil && locked.Stranger {
		s.Problems = append(s.Problems, locked.Error()+" (hint: "+locked.Hint()+")")
	}
	dir, tree, err := g.openTree()
	if err != nil {
		return s, err
	}
	defer dir.Close()
	s.Cgroup = tree.Version().String()
	s.Containers = journalled(state.Entries, func(id workload.ID) (cpu.Bandwidth, error) { return bandwidthOf(tree, id) })
	for _, c := range s.Containers {
		if c.Quota.Changed || c.Burst.Changed {
			s.Problems = append(s.Problems, c.Cgroup+": changed although no agent runs (hint: `plimsoll restore` puts it back)")
		}
	}
	s.Problems = append(s.Problems, others(apply.New(tree, nil, nil).Over(&task.Kernel{}).Shielding("/"), state.Entries)...)
	return s, nil
}

// others lists values of ours in other files than those of limits.
func others(w *apply.Writer, entries []journal.Entry) []string {
	var list []string
	for _, e := range entries {
		if e.Knob == plan.Quota || e.Knob == plan.Burst {
			continue
		}
		if held, ours := w.InFile(e); ours {
			list = append(list, fmt.Sprintf("%s: %s is %q in place of %q although no agent runs (hint: `plimsoll restore` puts it back)",
				e.Path, e.Knob, held, e.Target()))
		}
	}
	if s, there := w.Shielded(); there {
		list = append(list, fmt.Sprintf("%s: %d tasks of the root are kept in it although no agent runs (hint: `plimsoll restore` puts them back)",
			s.Group, s.Tasks))
	}
	return list
}

var errGone = errors.New("the group is gone: nothing is left to put back")

func bandwidthOf(tree *cgroup.Tree, id workload.ID) (cpu.Bandwidth, error) {
	inode, err := tree.Inode(id.Path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && inode != id.Inode {
		return cpu.Bandwidth{}, errGone
	}
	if err != nil {
		return cpu.Bandwidth{}, err
	}
	return tree.Bandwidth(id.Path)
}

// journalled makes one container of the journal's entries of a group, with the present values of the kernel's files.
func journalled(entries []journal.Entry, read func(workload.ID) (cpu.Bandwidth, error)) []report.Container {
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
		k.Problem = "journal: " + err.Error()
		return k
	}
	if k.Problem != "" {
		return k
	}
	k.Changed = e.Ours(plan.Time(now.InForce)) && plan.Time(now.InForce) != e.Target()
	if !k.Changed && now.InForce != k.Original && plan.Time(now.InForce) != e.Target() {
		k.Problem = "has a value that is not ours: a restore leaves it alone"
	}
	return k
}
