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
// group, as a runtime with a relative path does, keeps it from being removed until those are gone. So does a thread that
// was born in the group and that the kernel does not let go, as io_uring's workers were (until 01e68ce08a30 took
// PF_NO_SETAFFINITY from them). All others are moved, and the group, which has all CPUs again, is said to be left.

// shieldName is the name of the group.
const shieldName = "plimsoll-shield"

// tryAgain is when a thread that stayed in the root is tried again: a kernel thread that is just being made cannot be
// moved (no_cgroup_migration), and who was bound may be no longer. A try that is refused takes a lock that all of the
// machine's forks and exits share (cgroup_threadgroup_rwsem).
const tryAgain = time.Minute

// shield is what the writer knows of it.
type shield struct {
	root  string       // the group whose tasks are moved; "": none are
	stays map[int]stay // threads that stay there
}

// stay is when it was found out that a thread stays, and what the kernel said, if it was asked.
type stay struct {
	since time.Time
	err   error
}

// Shield is the group that the tasks of the root are in.
type Shield struct {
	Group string
	Tasks int
	New   bool // it was made just now
}

// Shielding has the writer move tasks of one group, the root of the cpuset hierarchy, when it is asked to, and back.
func (w *Writer) Shielding(root string) *Writer {
	w.shield = shield{root, map[int]stay{}}
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
	s, err := w.makeShield(group)
	if s.Group == "" {
		return s, fmt.Errorf("%s: %w%s", group, err, shieldHint(err))
	}
	if err == nil {
		err = w.fill(group)
	}
	in, err2 := w.tree.CPUSetThreads(group)
	s.Tasks = len(in)
	if err = errors.Join(err, err2); err != nil {
		return s, fmt.Errorf("%s: %w%s", group, err, shieldHint(err))
	}
	return s, nil
}

// shieldHint is what a person can do who gave the agent fewer capabilities than root has: the root of the hierarchy is
// writable for nobody (mode 0555), and another's task is moved by who may renice it (kernel/cgroup/cpuset.c,
// cpuset_can_attach: security_task_setscheduler).
func shieldHint(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return " (hint: it takes CAP_DAC_OVERRIDE and CAP_SYS_NICE)"
	}
	return ""
}

// shieldGroup is the path of the group, where there can be one.
func (w *Writer) shieldGroup() (group string, possible bool) {
	return path.Join(w.shield.root, shieldName), w.shield.root != "" && w.tree.CPUSetsSeparate()
}

// makeShield makes the group, or takes over one that was left behind, maybe before it had any CPUs. Without the group the
// answer is empty.
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
	all, err := w.tree.CPUs(w.shield.root)
	if err != nil {
		return err
	}
	tids, err := w.tree.CPUSetThreads(w.shield.root)
	if err != nil {
		return err
	}
	before := w.shield.stays
	w.shield.stays = map[int]stay{}
	var denied refusals
	for _, tid := range tids {
		at, stayed := before[tid]
		if !stayed || w.now().Sub(at.since) >= tryAgain {
			free, err := w.tasks.RunsOn(tid, all)
			if err == nil && free {
				err = w.tree.MoveCPUSetThread(group, tid)
			}
			switch {
			case errors.Is(err, syscall.ESRCH), err == nil && free:
				continue
			case err != nil && !isStuck(err):
				return err
			}
			at = stay{w.now(), err}
		}
		w.shield.stays[tid] = at
		if errors.Is(at.err, fs.ErrPermission) { // EINVAL is how the kernel keeps its own
			denied.add(tid, at.err)
		}
	}
	return denied.error(w.tasks)
}

// isStuck says of an error that it is this thread that cannot be moved, and that others may be: it is one that the kernel
// binds, or one of somebody whom the agent may not touch.
func isStuck(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrPermission)
}

// refusals counts threads that cannot be moved.
type refusals struct {
	n     int
	first int // thread id
	err   error
}

func (r *refusals) add(tid int, err error) {
	if r.n++; r.n == 1 {
		r.first, r.err = tid, err
	}
}

// error is nil where there are none.
func (r *refusals) error(tasks Tasks) error {
	if r.n == 0 {
		return nil
	}
	name := ""
	if tasks != nil {
		name = tasks.Name(r.first)
	}
	return fmt.Errorf("threads that cannot be moved: %d, the first is %d (%s): %w", r.n, r.first, name, r.err)
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
		if err == nil || n == 0 && !errors.Is(err, syscall.EBUSY) || wait > lastWait {
			break
		}
		if below, _ := w.tree.CPUSets(group); len(below) > 0 && errors.Is(err, syscall.EBUSY) {
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

// empty moves the threads of the group to the root, and says how many. One that cannot be moved keeps none of the others.
func (w *Writer) empty(group string) (moved int, err error) {
	tids, err := w.tree.CPUSetThreads(group)
	if err != nil {
		return 0, err
	}
	var stuck refusals
	for _, tid := range tids {
		switch err := w.tree.MoveCPUSetThread(w.shield.root, tid); {
		case err == nil:
			moved++
		case errors.Is(err, syscall.ESRCH):
		case isStuck(err):
			stuck.add(tid, err)
		default:
			return moved, err
		}
	}
	return moved, stuck.error(w.tasks)
}
