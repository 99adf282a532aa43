package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// The shield: keeping the tasks of the cpuset root off exclusive CPUs.
//
// Problem: on v1 the root of the cpuset hierarchy contains the services of the machine and its kernel threads, and the
// root cannot be bound.
//
// Approach: like `cset shield`, move them into one group, which starts with all CPUs of the root. From then on package
// reserve confines it like any other group. To undo the shield, all tasks in it are moved to the root. This needs no
// journal, because the group's name is fixed. Threads are moved one by one: a process may have threads in groups of
// other programs, and moving the process would move those as well.
//
// Some threads stay in the root: those that the kernel refuses to move (kernel/cgroup/cgroup.c,
// cgroup_procs_write_start: kthreadd, and PF_NO_SETAFFINITY of per-CPU kernel threads and workers), and those bound to
// fewer CPUs than the root has. Before 6.2 the latter would come back with all CPUs, and their former binding would be
// lost.
//
// Known limits: a task that binds itself to CPUs while it is in the group can lose that binding at the end (before
// 6.2). A refused thread is retried after tryAgain; a new thread with the same number waits as long. Groups that
// another program makes in the shield, such as a runtime with a relative path, prevent its removal until they are gone.
// So does a thread that was created in the group and that the kernel refuses to move, such as io_uring's workers (until
// 01e68ce08a30 removed their PF_NO_SETAFFINITY). All other threads are moved, the group gets all CPUs again, and the
// result reports that it was not removed.

// shieldName is the name of the group.
const shieldName = "plimsoll-shield"

// tryAgain is after what time a thread that stayed in the root is retried: a kernel thread that is just being created
// cannot be moved (no_cgroup_migration), and a bound thread may have been unbound. A refused attempt takes a lock that
// all forks and exits on the machine share (cgroup_threadgroup_rwsem).
const tryAgain = time.Minute

// stay is a thread that stays where it is: since when, and the kernel's error if it refused to move the thread.
type stay struct {
	tid   int
	since time.Time
	err   error
}

// Shield is the group of the tasks of the root.
type Shield struct {
	Group string
	Tasks int
	New   bool // it was made just now
}

// Shield makes the shield if it does not exist, and moves the current tasks of the root into it. No other change waits
// for that.
func (w *Writer) Shield() (Shield, error) {
	w.moving.Lock()
	defer w.moving.Unlock()
	group, possible := w.shieldGroup()
	switch {
	case !possible:
		return Shield{}, errors.New("there is no cpuset hierarchy apart from the cpu controller's")
	case w.Tasks == nil:
		return Shield{}, errNoTasks
	case w.hold.Load():
		return Shield{}, errors.New("writing is held")
	}
	s, err := w.makeShield(group)
	if err == nil {
		err = w.fill(group)
	}
	if s.Group != "" {
		in, err2 := w.tree.CPUSetThreads(group)
		s.Tasks, err = len(in), errors.Join(err, err2)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w%s", group, err, shieldHint(err))
	}
	return s, nil
}

// shieldHint says which capabilities are missing: the root of the hierarchy has mode 0555, and moving the task of
// another user requires the right to renice it (kernel/cgroup/cpuset.c, cpuset_can_attach: security_task_setscheduler).
func shieldHint(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return " (hint: it takes CAP_DAC_OVERRIDE and CAP_SYS_NICE)"
	}
	return ""
}

// shieldGroup is the path of the shield, and whether there can be one.
func (w *Writer) shieldGroup() (group string, possible bool) {
	return path.Join(w.Root, shieldName), w.Root != "" && w.tree.CPUSetsSeparate()
}

// makeShield makes the group, or takes over one that a former agent left, possibly before it had CPUs. The result is
// empty if the group could not be made.
func (w *Writer) makeShield(group string) (Shield, error) {
	s := Shield{Group: group}
	cpus, err := w.tree.CPUs(group)
	if missing(err) {
		if err = w.tree.MakeCPUSet(group); err != nil {
			return Shield{}, err
		}
		s.New = true
	}
	if err == nil && len(cpus) == 0 {
		err = w.tree.InheritCPUSet(group)
	}
	return s, err
}

// fill moves the threads of the root that can be moved.
func (w *Writer) fill(group string) error {
	all, err := w.tree.CPUs(w.Root)
	if err != nil {
		return err
	}
	tids, err := w.tree.CPUSetThreads(w.Root)
	if err != nil {
		return err
	}
	before := w.stays
	w.stays = map[int]stay{}
	var denied []stay
	for _, tid := range tids {
		at, stayed := before[tid]
		if !stayed || w.now().Sub(at.since) >= tryAgain {
			free, err := w.Tasks.RunsOn(tid, all)
			if err == nil && free {
				err = w.tree.MoveCPUSetThread(group, tid)
			}
			switch {
			case errors.Is(err, syscall.ESRCH), err == nil && free:
				continue
			case err != nil && !isStuck(err):
				return err
			}
			at = stay{tid, w.now(), err}
		}
		w.stays[tid] = at
		if errors.Is(at.err, fs.ErrPermission) { // EINVAL is normal for kernel threads
			denied = append(denied, at)
		}
	}
	return w.immovable(denied)
}

// isStuck says whether an error concerns only this thread, and others may be moved: the kernel binds the thread, or the
// agent lacks the right to move it.
func isStuck(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrPermission)
}

// immovable is an error that names threads that cannot be moved; nil: there are none.
func (w *Writer) immovable(threads []stay) error {
	if len(threads) == 0 {
		return nil
	}
	name, first := "", threads[0]
	if w.Tasks != nil {
		name = w.Tasks.Name(first.tid)
	}
	return fmt.Errorf("threads that cannot be moved: %d, the first is %d (%s): %w",
		len(threads), first.tid, name, first.err)
}

// Shielded says whether there is a shield, of this agent or another, and how many tasks are in it. It changes nothing.
func (w *Writer) Shielded() (s Shield, there bool) {
	group, possible := w.shieldGroup()
	if !possible {
		return s, false
	}
	in, err := w.tree.CPUSetThreads(group)
	return Shield{Group: group, Tasks: len(in)}, err == nil
}

// Unshield moves all tasks back and removes the group; without a shield it returns nil. The caller restores the group's
// CPUs before.
func (w *Writer) Unshield() []plan.Result {
	w.moving.Lock()
	defer w.moving.Unlock()
	group, possible := w.shieldGroup()
	if !possible {
		return nil
	}
	inode, err := w.tree.CPUSetInode(group)
	if missing(err) {
		return nil
	}
	moved, err := 0, error(nil)
	for wait := firstWait; ; wait *= 2 { // tasks in the group may create others meanwhile
		var n int
		if n, err = w.empty(group); err == nil {
			err = w.tree.RemoveCPUSet(group)
		}
		moved += n
		if err == nil || n == 0 && !errors.Is(err, syscall.EBUSY) || wait > lastWait {
			break
		}
		if below, _ := w.tree.CPUSets(group); len(below) > 0 && errors.Is(err, syscall.EBUSY) {
			err = fmt.Errorf("%s is in it: %w", below[0].Path, err)
			break
		}
		w.Sleep(wait)
	}
	c := plan.Change{Cgroup: workload.ID{Path: group, Inode: inode}, Knob: plan.Shield,
		From: plan.Number(int64(moved)), To: plan.Number(0),
		Restore: true, Why: "tasks of the root are in the root again"}
	if err != nil && !missing(err) {
		return []plan.Result{w.result(c, plan.Refused, "", err)}
	}
	return []plan.Result{w.result(c, plan.Applied, c.To, nil)}
}

// empty moves the threads of the group to the root, and says how many. It goes on after a thread that cannot be moved.
func (w *Writer) empty(group string) (moved int, err error) {
	tids, err := w.tree.CPUSetThreads(group)
	if err != nil {
		return 0, err
	}
	var stuck []stay
	for _, tid := range tids {
		switch err := w.tree.MoveCPUSetThread(w.Root, tid); {
		case err == nil:
			moved++
		case errors.Is(err, syscall.ESRCH):
		case isStuck(err):
			stuck = append(stuck, stay{tid: tid, err: err})
		default:
			return moved, err
		}
	}
	return moved, w.immovable(stuck)
}
