package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
)

// emptyPatience is how long a group may take to become empty after its processes were ended: a zombie that nobody
// has waited for yet still counts.
const emptyPatience = 5 * time.Second

// cpusetV1 is where the cpuset hierarchy of v1 is, below the root.
const cpusetV1 = "cpuset"

// Groups are the control groups that one experiment makes: /plimsoll-<name>-<pid>, which has no limit, and limited
// groups below it.
type Groups struct {
	dir    *cgroup.Dir
	tree   *cgroup.Tree
	base   string
	pinned bool      // they are in the cpuset hierarchy too
	made   []string  // directories below the root, parents first
	enable []enabled // in groups of others
}

// enabled is a controller that was enabled in a subtree_control file (v2).
type enabled struct{ file, controller string }

// NewGroups finds the cpu controller below root and makes the upper group.
func NewGroups(root, name string) (*Groups, error) { return makeGroups(root, name, false) }

// NewPinnableGroups are groups that can be bound to CPUs too.
func NewPinnableGroups(root, name string) (*Groups, error) { return makeGroups(root, name, true) }

func makeGroups(root, name string, pinned bool) (*Groups, error) {
	dir := cgroup.NewDir(root)
	tree, err := cgroup.Detect(dir)
	if err != nil {
		return nil, err
	}
	prefix := "/plimsoll-" + name + "-"
	g := &Groups{dir: dir, tree: tree, base: prefix + strconv.Itoa(os.Getpid()), pinned: pinned}
	if pinned && tree.Version() == cgroup.V1 && !g.exists(cpusetV1) {
		return nil, WithHint(fmt.Errorf("%s: no cpuset hierarchy", path.Join(root, cpusetV1)),
			"mount it: the groups are to be bound to CPUs")
	}
	if err := g.sweep(prefix); err != nil {
		return nil, err
	}
	if err := g.delegate("/"); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	if err := g.make(g.base); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	if err := g.delegate(g.base); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Base is the path of the upper group.
func (g *Groups) Base() string { return g.base }

// Tree is the hierarchy that the groups are in.
func (g *Groups) Tree() *cgroup.Tree { return g.tree }

// Add makes a group below the upper one. It is not limited yet.
func (g *Groups) Add(name string) (group string, err error) {
	group = path.Join(g.base, name)
	return group, g.make(group)
}

// AddParent makes a group below the upper one that will contain groups, with a limit of its own.
func (g *Groups) AddParent(name string) (group string, err error) {
	if group, err = g.Add(name); err == nil {
		err = g.delegate(group)
	}
	return group, err
}

func (g *Groups) make(group string) error {
	for _, name := range g.dirs(group) {
		if err := g.dir.Mkdir(name); err != nil {
			return err
		}
		g.made = append(g.made, name)
	}
	if g.pinned && g.tree.Version() == cgroup.V1 {
		return g.tree.InheritCPUSet(group) // a new one has no CPUs, and takes no tasks
	}
	return nil
}

// dirs are the directories of a group, in all hierarchies that it is in.
func (g *Groups) dirs(group string) []string {
	dirs := g.tree.Dirs(group)
	if g.pinned && g.tree.Version() == cgroup.V1 {
		dirs = append(dirs, path.Join(cpusetV1, group))
	}
	return dirs
}

func (g *Groups) exists(name string) bool {
	_, err := g.dir.Inode(name)
	return err == nil
}

// delegate enables the controllers for the groups below a group (v2). What was not enabled in a group of somebody
// else is disabled again in the end.
func (g *Groups) delegate(group string) error {
	if g.tree.Version() == cgroup.V1 {
		return nil
	}
	name := path.Join(g.tree.Dir(group), "cgroup.subtree_control")
	have, err := g.dir.ReadFile(name)
	if err != nil {
		return err
	}
	for _, controller := range []string{"cpu", "cpuset"} {
		if controller == "cpuset" && !g.pinned || slices.Contains(strings.Fields(string(have)), controller) {
			continue
		}
		if err := g.dir.WriteFile(name, []byte("+"+controller)); err != nil {
			return fmt.Errorf("enable the %s controller: %w", controller, err)
		}
		if group != g.base && !strings.HasPrefix(group, g.base+"/") {
			g.enable = append(g.enable, enabled{name, controller})
		}
	}
	return nil
}

// Enter puts a process into a group.
func (g *Groups) Enter(group string, pid int) error {
	for _, name := range g.dirs(group) {
		if err := g.dir.WriteFile(path.Join(name, "cgroup.procs"), []byte(strconv.Itoa(pid))); err != nil {
			return fmt.Errorf("put process %d into %s: %w", pid, group, err)
		}
	}
	return nil
}

// The greatest weights (kernel/sched/core.c, MAX_SHARES; kernel/cgroup: CGROUP_WEIGHT_MAX).
const (
	greatestShares = 1 << 18
	greatestWeight = 10000
)

// MaximizeWeight gives the upper group the greatest weight: what other programs of the machine do takes little from any
// group in it, and among themselves these are as before. Nor does a program get much that the experiment itself needs
// outside of it.
func (g *Groups) MaximizeWeight() error {
	if g.tree.Version() == cgroup.V1 {
		return g.tree.SetWeight(g.base, greatestShares)
	}
	return g.tree.SetWeight(g.base, greatestWeight)
}

// Limit writes the quota of a group. The period is the kernel's default, as it is in a new group.
func (g *Groups) Limit(group string, b cpu.Bandwidth) error { return g.tree.SetQuota(group, b.Quota) }

// LimitEvery writes quota and period of a group that has no limit.
func (g *Groups) LimitEvery(group string, b cpu.Bandwidth) error {
	name, text := "cpu.max", fmt.Sprintf("max %d", b.Period.Microseconds())
	if g.tree.Version() == cgroup.V1 {
		name, text = "cpu.cfs_period_us", strconv.FormatInt(b.Period.Microseconds(), 10)
	}
	if err := g.dir.WriteFile(path.Join(g.tree.Dir(group), name), []byte(text)); err != nil {
		return err
	}
	return g.tree.SetQuota(group, b.Quota)
}

// canBurst says whether the kernel has the burst buffer (5.14).
func (g *Groups) canBurst(group string) bool {
	_, err := g.tree.Burst(group)
	return !errors.Is(err, fs.ErrNotExist)
}

// Used is the CPU time that a group has used so far.
func (g *Groups) Used(group string) (time.Duration, error) {
	c, err := g.tree.Counters(group)
	if err == nil && !c.HasUsage {
		err = fmt.Errorf("%s: no count of the CPU time used: %w (is cpuacct mounted?)", group, cgroup.ErrNoCPU)
	}
	return c.Usage, err
}

// Spent is the CPU time that a group uses meanwhile.
func (g *Groups) Spent(group string, do func() error) (time.Duration, error) {
	before, after, err := Around(func() (time.Duration, error) { return g.Used(group) }, do)
	if err != nil {
		return 0, err
	}
	return after - before, nil
}

// Close removes the groups. Their processes must have been ended.
func (g *Groups) Close() error {
	var errs []error
	for _, name := range slices.Backward(g.made) {
		errs = append(errs, g.remove(name))
	}
	g.made = nil
	for _, e := range g.enable {
		// EBUSY and the like: somebody has begun to use it meanwhile, and may keep it.
		_ = g.dir.WriteFile(e.file, []byte("-"+e.controller))
	}
	g.enable = nil
	return errors.Join(append(errs, g.dir.Close())...)
}

// Remove removes one of the groups. Its processes must have been ended.
func (g *Groups) Remove(group string) error {
	g.tree.Forget(group)
	for _, name := range slices.Backward(g.dirs(group)) {
		if err := g.remove(name); err != nil {
			return err
		}
		g.made = slices.DeleteFunc(g.made, func(made string) bool { return made == name })
	}
	return nil
}

func (g *Groups) remove(name string) error {
	for deadline := time.Now().Add(emptyPatience); ; time.Sleep(20 * time.Millisecond) {
		err := g.dir.Rmdir(name)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return err
		}
	}
}

// sweep removes what an experiment that was killed has left behind: empty groups whose maker is gone.
func (g *Groups) sweep(prefix string) error {
	groups, err := g.tree.Children("/")
	if err != nil {
		return err
	}
	for _, group := range groups {
		maker, ok := strings.CutPrefix(group, prefix)
		pid, err := strconv.Atoi(maker)
		if !ok || err != nil || alive(pid) {
			continue
		}
		g.sweepBelow(group)
	}
	return nil
}

func (g *Groups) sweepBelow(group string) {
	below, _ := g.tree.Children(group)
	for _, old := range below {
		g.sweepBelow(old)
	}
	for _, name := range g.dirs(group) {
		_ = g.dir.Rmdir(name) // not empty: somebody is in there, and it stays
	}
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// Limited is the limit of so many CPUs at the kernel's default period.
func Limited(cpus float64) cpu.Bandwidth {
	quota := time.Duration(cpus * float64(cpu.DefaultPeriod)).Round(time.Microsecond)
	return cpu.Bandwidth{Quota: quota, Period: cpu.DefaultPeriod}
}
