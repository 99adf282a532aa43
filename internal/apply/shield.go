package apply

import (
	"errors"
	"fmt"
	"path"
	"syscall"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// The shield: keeping the tasks of the cpuset root off CPUs that are somebody's own.
//
// Problem: on v1 the root of the cpuset hierarchy holds the services of the machine and its kernel threads, and the root
// cannot be bound.
//
// Approach: as `cset shield` does, they are moved into one group, that begins with all that the root has. From then on it
// is a group like any other, that package reserve confines. It is undone by moving all that is in it to the root, whatever
// the journal knows: the group's name is fixed. Threads are moved one by one, for a process may have threads in groups of
// others, which moving the process would take away from there.
//
// What stays in the root: a thread that the kernel does not let go (kernel/cgroup/cgroup.c, cgroup_procs_write_start:
// PF_NO_SETAFFINITY, as per-CPU kernel threads and workers have, and kthreadd), and one that is bound to fewer CPUs than
// the root has. Before 6.2 the latter would come back with all CPUs, and nobody would know what it had.
//
// Known limits: a task that binds itself to CPUs while it is in the group can lose that at the end (before 6.2). A refused
// thread is tried again after a while; one that takes over its number meanwhile waits as long. Whoever makes groups in the
// group, as a runtime with a relative path does, keeps it from being removed until those are gone.

// shieldName is the name of the group.
const shieldName = "plimsoll-shield"

// tryAgain is when a thread that stayed in the root is tried again: a kernel thread that is just being made cannot be
// moved (no_cgroup_migration), and who was bound may be no longer. A try that is refused takes a lock that all of the
// machine's forks and exits share (cgroup_threadgroup_rwsem).
const tryAgain = time.Minute

// shield is what the writer knows of it.
type shield struct {
	root  string            // the group whose tasks are moved; "": none are
	stays map[int]time.Time // threads that stay there, and when that was found out
}

// Shield is the group that the tasks of the root are in.
type Shield struct {
	Group string
	Tasks int
	New   bool // it was made just now
}

// Shielding has the writer move tasks of one group, the root of the cpuset hierarchy, when it is asked to, and back.
func (w *Writer) Shielding(root string) *Writer {
	w.shield = shield{root, map[int]time.Time{}}
	return w
}

// Shield sees that the group is there, and moves into it whoever is in the root now.
func (w *Writer) Shield() (Shield, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	group, possible := w.shieldGroup()
	switch {
	case !possible:
		return Shield{}, errors.New("there is no cpuset hierarchy apart from the cpu controller's")
	case w.tasks == nil:
		return Shield{}, errNoTasks
	case w.Held():
		return Shield{}, errors.New("writing is held")
	}
	s := Shield{Group: group}
	err := w.makeShield(&s)
	if err == nil {
		err = w.fill(s.Group)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", s.Group, err)
	}
	in, err := w.tree.CPUSetThreads(s.Group)
	s.Tasks = len(in)
	return s, err
}

// shieldGroup is the path of the group, where there can be one.
func (w *Writer) shieldGroup() (group string, possible bool) {
	return path.Join(w.shield.root, shieldName), w.shield.root != "" && w.tree.CPUSetsApart()
}

// makeShield makes the group, or takes over one that was left behind, maybe before it had any CPUs.
func (w *Writer) makeShield(s *Shield) error {
	cpus, err := w.tree.CPUs(s.Group)
	switch {
	case missing(err):
		s.New = true
		return w.tree.MakeCPUSet(s.Group)
	case err == nil && len(cpus) == 0:
		return w.tree.InheritCPUSet(s.Group)
	}
	return err
}

// fill moves the threads of the root that can be moved.
func (w *Writer) fill(group string) error {
	all, err := w.tree.CPUs(w.shield.root)
	if err != nil {
		return err
	}
	tids, err := w.tree.CPUSetThreads(w.shield.root)
	if err != nil {
		return err
	}
	before := w.shield.stays
	w.shield.stays = map[int]time.Time{}
	for _, tid := range tids {
		at, stayed := before[tid]
		if !stayed || w.now().Sub(at) >= tryAgain {
			free, err := w.tasks.RunsOn(tid, all)
			if err == nil && free {
				err = w.tree.MoveCPUSetThread(group, tid)
			}
			switch {
			case errors.Is(err, syscall.ESRCH), err == nil && free:
				continue
			case err != nil && !errors.Is(err, syscall.EINVAL):
				return err
			}
			at = w.now()
		}
		w.shield.stays[tid] = at
	}
	return nil
}

// Shielded says whether there is a shield, whoever has made it, and how many tasks are in it. It changes nothing.
func (w *Writer) Shielded() (s Shield, there bool) {
	group, possible := w.shieldGroup()
	if !possible {
		return s, false
	}
	in, err := w.tree.CPUSetThreads(group)
	return Shield{Group: group, Tasks: len(in)}, err == nil
}

// Unshield moves all back, and removes the group. It says nothing where there is none. The group's CPUs are put back before.
func (w *Writer) Unshield() []plan.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unshield()
}

func (w *Writer) unshield() []plan.Result {
	group, possible := w.shieldGroup()
	if !possible {
		return nil
	}
	inode, err := w.tree.CPUSetInode(group)
	if missing(err) {
		return nil
	}
	moved, err := 0, error(nil)
	for wait := firstWait; ; wait *= 2 { // what is in the group makes others meanwhile
		var n int
		if n, err = w.empty(group); err == nil {
			err = w.tree.RemoveCPUSet(group)
		}
		moved += n
		if !errors.Is(err, syscall.EBUSY) || wait > lastWait {
			break
		}
		if below, _ := w.tree.CPUSets(group); len(below) > 0 {
			err = fmt.Errorf("%s is in it: %w", below[0].Path, err)
			break
		}
		w.sleep(wait)
	}
	c := plan.Change{Cgroup: workload.ID{Path: group, Inode: inode}, Knob: plan.Shield, From: plan.Number(int64(moved)), To: plan.Number(0),
		Restore: true, Why: "tasks of the root are in the root again"}
	if err != nil && !missing(err) {
		return []plan.Result{w.result(c, plan.Refused, "", err)}
	}
	return []plan.Result{w.result(c, plan.Applied, c.To, nil)}
}

// empty moves the threads of the group to the root, and says how many.
func (w *Writer) empty(group string) (moved int, err error) {
	tids, err := w.tree.CPUSetThreads(group)
	if err != nil {
		return 0, err
	}
	for _, tid := range tids {
		switch err := w.tree.MoveCPUSetThread(w.shield.root, tid); {
		case err == nil:
			moved++
		case !errors.Is(err, syscall.ESRCH):
			return moved, err
		}
	}
	return moved, nil
}
