package sim

import (
	"slices"
	"strconv"
	"syscall"

	"plimsoll/internal/cpu"
)

// CPUs as the cpuset controller has them: kept and checked as the kernel does, but no CPU time moves with them. On v1
// they are a hierarchy of their own, in which a new group has its parent's CPUs, as runtimes see to.

// cpusFile says whether a file is one of the cpuset controller.
func cpusFile(file string) bool {
	switch file {
	case "cpuset.cpus", "cpuset.cpus.effective", "cpuset.effective_cpus":
		return true
	}
	return false
}

func (k *Kernel) all() cpu.Set { return firstCPUs(k.config.CPUs) }

func firstCPUs(n int) cpu.Set {
	set := make(cpu.Set, n)
	for i := range set {
		set[i] = i
	}
	return set
}

// effective is what tasks of a group may use (kernel/cgroup/cpuset.c, update_cpumasks_hier).
func (k *Kernel) effective(g *group) cpu.Set {
	if g == k.root {
		return k.all()
	}
	outer := k.effective(g.parent)
	if own := g.cpus.And(outer); len(own) > 0 || k.config.Version == 1 {
		return own
	}
	return outer
}

func (k *Kernel) cpusText(g *group, file string) string {
	set := g.cpus
	if file != "cpuset.cpus" {
		set = k.effective(g)
	}
	return set.String() + "\n"
}

// setCPUs is update_cpumask with validate_change: on v1 no child has a CPU that its parent has not; and what has CPUs
// keeps one while tasks are in it or below, also on v2, where an empty list would inherit. On v2 CPUs may be offline
// that it is given (cpuset_bind).
func (k *Kernel) setCPUs(g *group, text string) error {
	all := k.all()
	if k.config.Version == 2 {
		all = firstCPUs(max(k.config.CPUs, k.config.PossibleCPUs))
	}
	set, err := cpu.ParseSet(text)
	switch {
	case err != nil:
		return syscall.EINVAL
	case g == k.root:
		return syscall.EACCES
	case !set.Within(all):
		return syscall.EINVAL
	}
	if k.config.Version == 1 {
		if !set.Within(g.parent.cpus) {
			return syscall.EACCES
		}
		for _, c := range g.children {
			if !c.cpus.Within(set) {
				return syscall.EBUSY
			}
		}
	}
	if len(set) == 0 && len(g.cpus) > 0 && k.populated(g) && !k.config.InheritsAgain {
		return syscall.ENOSPC
	}
	g.cpus = set
	return nil
}

// addCPUSet makes a group of the cpuset hierarchy only.
func (k *Kernel) addCPUSet(name string, parent *group) {
	g := k.add(name, parent)
	g.acct, g.only, g.cpus = false, true, nil
}

// cpusetTasks are the tasks of a group in the cpuset hierarchy.
func (k *Kernel) cpusetTasks(g *group) []int {
	if len(k.moved) == 0 {
		return g.tasks
	}
	var list []int
	for _, home := range k.order {
		for _, tid := range home.tasks {
			if at := k.moved[tid]; at == g || at == nil && home == g {
				list = append(list, tid)
			}
		}
	}
	return list
}

// moveCPUSet moves a task to another group of the cpuset hierarchy (kernel/cgroup/cpuset.c, cpuset_can_attach).
func (k *Kernel) moveCPUSet(to *group, text string) error {
	tid, err := strconv.Atoi(text)
	if err != nil {
		return syscall.EINVAL
	}
	if len(k.effective(to)) == 0 {
		return syscall.ENOSPC
	}
	for _, home := range k.order {
		if slices.Contains(home.tasks, tid) {
			k.moved[tid] = to
			return nil
		}
	}
	return syscall.ESRCH
}
