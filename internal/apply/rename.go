package apply

import (
	"path"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// On v1 a group can be renamed, below the same parent (kernel/cgroup/cgroup-v1.c, cgroup1_rename): it is the same group with
// the same inode, and what stands of ours in it still does. So before a group counts as gone it is looked for beside its
// place, and the journal follows it.
//
// Known limits: a group whose parent was renamed is not found, nor are the groups of the cpuset hierarchy, which have
// other names to be renamed, and tasks, which are restored by path.

// follow has the journal call an entry's group by its new name.
func (w *Writer) follow(e journal.Entry) (to workload.ID, moved bool) {
	if w.tree.Version() != cgroup.V1 || ofCPUSet(e.Knob) || e.Knob.OfTasks() || !isGone(w.identify(e.ID, e.Knob)) {
		return e.ID, false
	}
	siblings, err := w.tree.Children(path.Dir(e.Path))
	if err != nil {
		return e.ID, false
	}
	for _, s := range siblings {
		if inode, err := w.tree.Inode(s); err == nil && inode == e.Inode {
			to = workload.ID{Path: s, Inode: inode}
			return to, w.journal.Rename(e, to) == nil
		}
	}
	return e.ID, false
}

// followed follows the entries that a filter lets pass, and returns one that lets them pass under their new names.
func (w *Writer) followed(filter func(journal.Entry) bool) func(journal.Entry) bool {
	was := map[workload.ID]workload.ID{}
	for _, e := range w.journal.Entries() {
		if !filter(e) {
			continue
		}
		if to, moved := w.follow(e); moved {
			was[to] = e.ID
		}
	}
	return func(e journal.Entry) bool {
		if id, moved := was[e.ID]; moved {
			e.ID = id
		}
		return filter(e)
	}
}

// followGone follows a group that a change did not find: what stands there is put back by the next restore.
func (w *Writer) followGone(c plan.Change) {
	knobs := []plan.Knob{c.Knob}
	if companion, ok := w.companion(c); ok {
		knobs = append(knobs, companion)
	}
	for _, knob := range knobs {
		if e, claimed := w.journal.Entry(c.Cgroup, knob); claimed {
			w.follow(e)
		}
	}
}
