package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hierarchy is the hierarchy of a file: v1 has the groups once below cpu/ and once below cpuacct/.
type hierarchy int

const (
	unified hierarchy = iota
	cpuV1
	acctV1
	cpusetV1
)

func pathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// locate finds what a name says: a group's directory (file is "") or a file in it. At the root of a v1 machine,
// where the hierarchies are mounted, there is no group.
func (k *Kernel) locate(name string) (g *group, in hierarchy, file string, err error) {
	name = path.Clean(name)
	rest := name
	if k.config.Version == 1 {
		first, below, _ := strings.Cut(name, "/")
		switch first {
		case ".":
			return nil, 0, "", nil
		case "cpu":
			in = cpuV1
		case "cpuacct":
			in = acctV1
		case "cpuset":
			in = cpusetV1
		}
		if in == unified || in == cpusetV1 && !k.config.CPUSets {
			return nil, 0, "", syscall.ENOENT
		}
		rest = below
	}
	full := path.Clean("/" + rest)
	if g = k.byPath[full]; g == nil {
		g, file = k.byPath[path.Dir(full)], path.Base(full)
	}
	if g == nil || in == acctV1 && !g.acct || in == cpuV1 && g.only {
		return nil, 0, "", syscall.ENOENT
	}
	if file != "" && k.fileNumber(g, in, file) == 0 {
		return nil, 0, "", syscall.ENOENT
	}
	return g, in, file, nil
}

// files lists the files of a group's directory.
func (k *Kernel) files(g *group, in hierarchy) []string {
	files := []string{"cgroup.procs"}
	switch in {
	case acctV1:
		return append(files, "tasks", "cpuacct.usage")
	case cpusetV1:
		return append(files, "tasks", "cpuset.cpus", "cpuset.effective_cpus", "cpuset.mems")
	case cpuV1:
		files = append(files, "tasks", "cpu.shares", "cpu.idle", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat")
		if k.config.BurstFile {
			files = append(files, "cpu.cfs_burst_us")
		}
	default:
		files = append(files, "cgroup.threads", "cgroup.controllers", "cpu.stat")
		if k.config.CPUSets {
			files = append(files, "cpuset.cpus.effective")
		}
		if g == k.root { // CFTYPE_NOT_ON_ROOT
			return files
		}
		files = append(files, "cgroup.events", "cpu.weight", "cpu.idle", "cpu.max")
		if k.config.BurstFile {
			files = append(files, "cpu.max.burst")
		}
		if k.config.CPUSets {
			files = append(files, "cpuset.cpus")
		}
	}
	return files
}

// fileNumber is a file's place in its directory, from 1; 0 when it is not there.
func (k *Kernel) fileNumber(g *group, in hierarchy, file string) int {
	for i, name := range k.files(g, in) {
		if name == file {
			return i + 1
		}
	}
	return 0
}

// Inode is the inode number of a directory or file.
func (k *Kernel) Inode(name string) (uint64, error) {
	g, in, file, err := k.locate(name)
	switch {
	case err != nil:
		return 0, pathError("stat", name, err)
	case g == nil:
		return 1, nil
	}
	n := g.id.Inode
	switch in {
	case acctV1:
		n += 32
	case cpusetV1:
		n += 48
	}
	if file != "" {
		n += uint64(k.fileNumber(g, in, file))
	}
	return n, nil
}

// Dirs lists the directories in a directory, sorted.
func (k *Kernel) Dirs(name string) ([]string, error) {
	g, in, file, err := k.locate(name)
	switch {
	case err != nil:
		return nil, pathError("open", name, err)
	case file != "":
		return nil, pathError("readdirent", name, syscall.ENOTDIR)
	case g == nil:
		return []string{"cpu", "cpuacct"}, nil
	}
	names := []string{}
	for _, c := range g.children {
		if (in != acctV1 || c.acct) && (in != cpuV1 || !c.only) {
			names = append(names, path.Base(c.id.Path))
		}
	}
	return names, nil
}

// Mkdir makes the directory of a group. On v1 a group begins in the cpu hierarchy, and is in cpuacct once it has a
// directory there too; one that begins in the cpuset hierarchy is there only, without CPUs.
func (k *Kernel) Mkdir(name string) error {
	if k.Fault != nil {
		if err := k.Fault("mkdir", name, nil); err != nil {
			return pathError("mkdir", name, err)
		}
	}
	if _, _, _, err := k.locate(name); err == nil {
		return pathError("mkdir", name, syscall.EEXIST)
	}
	parent, in, file, err := k.locate(path.Dir(path.Clean(name)))
	if err != nil || parent == nil || file != "" {
		return pathError("mkdir", name, syscall.ENOENT)
	}
	full := path.Join(parent.id.Path, path.Base(name))
	g := k.byPath[full]
	switch {
	case in == cpusetV1:
		k.addCPUSet(full, parent)
	case in != acctV1:
		k.add(full, parent).acct = false
	case g != nil:
		g.acct = true
	default:
		return pathError("mkdir", name, syscall.ENOENT)
	}
	return nil
}

// Rmdir removes the directory of a group without tasks and groups in it.
func (k *Kernel) Rmdir(name string) error {
	g, in, file, err := k.locate(name)
	switch {
	case err != nil:
		return pathError("rmdir", name, err)
	case file != "":
		return pathError("rmdir", name, syscall.ENOTDIR)
	case g == nil || g == k.root || len(g.tasks) > 0 || len(g.children) > 0 || len(k.cpusetTasks(g)) > 0:
		return pathError("rmdir", name, syscall.EBUSY)
	case in == acctV1:
		g.acct = false
	default:
		k.RemoveGroup(g.id.Path)
	}
	return nil
}

// ReadFile reads a file.
func (k *Kernel) ReadFile(name string) ([]byte, error) {
	if k.Fault != nil {
		if err := k.Fault("read", name, nil); err != nil {
			return nil, pathError("read", name, err)
		}
	}
	g, in, file, err := k.locate(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	if g == nil || file == "" {
		return nil, pathError("read", name, syscall.EISDIR)
	}
	return []byte(k.text(g, in, file)), nil
}

func (k *Kernel) text(g *group, in hierarchy, file string) string {
	if cpusFile(file) {
		return k.cpusText(g, file)
	}
	b, tasks := g.pool.Bandwidth(), g.tasks
	if in == cpusetV1 {
		tasks = k.cpusetTasks(g)
	}
	switch file {
	case "cpuset.mems":
		return "0\n"
	case "cgroup.procs":
		return numbers(tasks[:min(1, len(tasks))])
	case "tasks", "cgroup.threads":
		return numbers(tasks)
	case "cgroup.controllers":
		return map[bool]string{false: "cpu\n", true: "cpuset cpu\n"}[k.config.CPUSets]
	case "cgroup.events":
		return fmt.Sprintf("populated %d\nfrozen 0\n", bit(k.populated(g)))
	case "cpuacct.usage":
		return fmt.Sprintf("%d\n", g.usage)
	case "cpu.shares", "cpu.weight":
		return fmt.Sprintf("%d\n", k.shownWeight(g))
	case "cpu.idle":
		return fmt.Sprintf("%d\n", bit(g.idle))
	case "cpu.cfs_quota_us":
		return micros(b.Quota, b.Limited(), "-1") + "\n"
	case "cpu.cfs_period_us":
		return micros(b.Period, true, "") + "\n"
	case "cpu.max":
		return micros(b.Quota, b.Limited(), "max") + " " + micros(b.Period, true, "") + "\n"
	case "cpu.cfs_burst_us", "cpu.max.burst":
		return micros(b.Burst, true, "") + "\n"
	}
	return k.stat(g, in) // cpu.stat
}

// stat is cpu.stat (cpu_cfs_stat_show of v1, cpu_extra_stat_show and cgroup_base_stat_cputime_show of v2).
func (k *Kernel) stat(g *group, in hierarchy) string {
	c := g.pool.Counts()
	bursts := k.config.BurstFile && !k.config.NoBurstCounters
	var b strings.Builder
	if in == cpuV1 {
		fmt.Fprintf(&b, "nr_periods %d\nnr_throttled %d\nthrottled_time %d\n", c.Periods, c.Throttled, g.stood.booked)
		if bursts {
			fmt.Fprintf(&b, "nr_bursts %d\nburst_time %d\n", c.Bursts, c.BurstTime)
		}
		return b.String()
	}
	usage := g.usage.Microseconds()
	fmt.Fprintf(&b, "usage_usec %d\nuser_usec %d\nsystem_usec 0\n", usage, usage)
	if g == k.root {
		return b.String()
	}
	fmt.Fprintf(&b, "nr_periods %d\nnr_throttled %d\nthrottled_usec %d\n",
		c.Periods, c.Throttled, g.stood.booked.Microseconds())
	if bursts {
		fmt.Fprintf(&b, "nr_bursts %d\nburst_usec %d\n", c.Bursts, c.BurstTime.Microseconds())
	}
	return b.String()
}

// populated says whether there are tasks in a group or below it, as its hierarchy of CPUs has them.
func (k *Kernel) populated(g *group) bool {
	return len(k.cpusetTasks(g)) > 0 || slices.ContainsFunc(g.children, k.populated)
}

func numbers(pids []int) string {
	var b strings.Builder
	for _, pid := range pids {
		b.WriteString(strconv.Itoa(pid) + "\n")
	}
	return b.String()
}

func micros(d time.Duration, limited bool, unlimited string) string {
	if !limited {
		return unlimited
	}
	return strconv.FormatInt(d.Microseconds(), 10)
}

func bit(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// errno is the number that the kernel answers with.
func errno(err error) error {
	if e := syscall.Errno(0); errors.As(err, &e) {
		return e
	}
	return syscall.EINVAL
}
