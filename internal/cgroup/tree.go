package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"plimsoll/internal/cpu"
)

// Version is the cgroup version that carries the cpu controller.
type Version int

// The two versions. A hybrid mount counts as V1 while the cpu controller is bound to a v1 hierarchy.
const (
	V1 Version = 1
	V2 Version = 2
)

func (v Version) String() string { return fmt.Sprintf("v%d", int(v)) }

// Tree is the hierarchy of control groups of a machine. A group is named by its path below the cpu hierarchy (v1)
// or below the root (v2), beginning with "/".
type Tree struct {
	fs      FS
	version Version
	cpu     string // directory of the cpu hierarchy below the FS root; "" on v2
	acct    string // of cpuacct; the same as cpu where both are mounted together
	cpuset  string
}

// ErrNoCPU says that no cpu controller stands below the root.
var ErrNoCPU = errors.New("no cpu controller below the cgroup root")

// Detect finds out how the controllers are mounted below the root of fsys: v2 when the root has a cpu controller
// (cgroup.controllers), v1 when a directory cpu or cpu,cpuacct has groups, or when the root itself is a v1 cpu
// hierarchy.
func Detect(fsys FS) (*Tree, error) {
	if data, err := fsys.ReadFile("cgroup.controllers"); err == nil {
		if !containsWord(string(data), "cpu") {
			return nil, fmt.Errorf("cgroup v2: %w (cgroup.controllers: %q)", ErrNoCPU, strings.TrimSpace(string(data)))
		}
		return &Tree{fs: fsys, version: V2}, nil
	}
	for _, dir := range []string{"cpu", "cpu,cpuacct", "cpuacct,cpu", "."} {
		if _, err := fsys.Inode(path.Join(dir, "cpu.shares")); err == nil {
			return detectV1(fsys, dir), nil
		}
	}
	return nil, fmt.Errorf("%w: neither cgroup.controllers (v2) nor cpu/cpu.shares (v1) is there", ErrNoCPU)
}

func detectV1(fsys FS, cpuDir string) *Tree {
	t := &Tree{fs: fsys, version: V1, cpu: cpuDir}
	for _, dir := range []string{cpuDir, "cpuacct", "../cpuacct"} {
		if _, err := fsys.Inode(path.Join(dir, "cpuacct.usage")); err == nil {
			t.acct = dir
			break
		}
	}
	if _, err := fsys.Inode("cpuset/cpuset.cpus"); err == nil {
		t.cpuset = "cpuset"
	}
	return t
}

func containsWord(text, word string) bool {
	for _, w := range strings.Fields(text) {
		if w == word {
			return true
		}
	}
	return false
}

// Version tells the cgroup version of the cpu controller.
func (t *Tree) Version() Version { return t.version }

// Dir is the directory of a group below the FS root, in the hierarchy that has the cpu controller.
func (t *Tree) Dir(group string) string { return path.Join(".", t.cpu, group) }

// Children lists the groups directly below a group, sorted.
func (t *Tree) Children(group string) ([]string, error) {
	names, err := t.fs.Dirs(t.Dir(group))
	for i, name := range names {
		names[i] = path.Join(group, name)
	}
	return names, err
}

// Inode is the identity of a group.
func (t *Tree) Inode(group string) (uint64, error) { return t.fs.Inode(t.Dir(group)) }

// Tasks lists the threads of a group itself, not of its children.
func (t *Tree) Tasks(group string) ([]int, error) {
	name := "tasks"
	if t.version == V2 {
		name = "cgroup.threads"
	}
	data, err := t.read(group, name)
	if errors.Is(err, fs.ErrNotExist) || err != nil && t.version == V2 {
		// A domain group with threaded children refuses cgroup.threads with EOPNOTSUPP.
		data, err = t.read(group, "cgroup.procs")
	}
	if err != nil {
		return nil, err
	}
	return parsePIDs(data)
}

// Populated says whether a process is in the group or below it. On v1 only the group itself is looked at, and its
// direct children.
func (t *Tree) Populated(group string) (bool, error) {
	if t.version == V2 {
		data, err := t.read(group, "cgroup.events")
		if err == nil {
			n, err := parseKey(data, "populated")
			return n == 1, err
		}
		if !errors.Is(err, fs.ErrNotExist) { // the root has no cgroup.events, and is never empty
			return false, err
		}
		return true, nil
	}
	data, err := t.read(group, "cgroup.procs")
	if err != nil || len(data) > 0 {
		return err == nil, err
	}
	children, err := t.Children(group)
	for _, c := range children {
		if data, err := t.read(c, "cgroup.procs"); err == nil && len(data) > 0 {
			return true, nil
		}
	}
	return false, err
}

// Bandwidth reads quota, period and burst. A kernel without burst reads as burst 0.
func (t *Tree) Bandwidth(group string) (cpu.Bandwidth, error) {
	var b cpu.Bandwidth
	var err error
	if t.version == V2 {
		b, err = t.bandwidthV2(group)
	} else {
		b, err = t.bandwidthV1(group)
	}
	if err != nil {
		return cpu.Bandwidth{}, err
	}
	b.Burst, err = t.Burst(group)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	return b, err
}

func (t *Tree) bandwidthV2(group string) (cpu.Bandwidth, error) {
	data, err := t.read(group, "cpu.max")
	if err != nil {
		return cpu.Bandwidth{}, err
	}
	b, err := parseMax(data)
	return b, t.wrap(group, "cpu.max", err)
}

func (t *Tree) bandwidthV1(group string) (cpu.Bandwidth, error) {
	quota, err := t.readMicros(group, "cpu.cfs_quota_us")
	if err != nil {
		return cpu.Bandwidth{}, err
	}
	period, err := t.readMicros(group, "cpu.cfs_period_us")
	return cpu.Bandwidth{Quota: quota, Period: period}, err
}

// Burst reads the burst buffer's size. The error is fs.ErrNotExist on a kernel without (below 5.14).
func (t *Tree) Burst(group string) (time.Duration, error) { return t.readMicros(group, t.burstFile()) }

func (t *Tree) burstFile() string {
	if t.version == V2 {
		return "cpu.max.burst"
	}
	return "cpu.cfs_burst_us"
}

// SetQuota writes the quota and leaves the period as it is. Every such write refills the group's runtime
// (kernel/sched/core.c, tg_set_cfs_bandwidth): the caller accounts for it.
func (t *Tree) SetQuota(group string, quota time.Duration) error {
	if t.version == V1 {
		return t.write(group, "cpu.cfs_quota_us", formatQuotaV1(quota))
	}
	b, err := t.bandwidthV2(group)
	if err != nil {
		return err
	}
	return t.write(group, "cpu.max", formatMax(quota, b.Period))
}

// SetBurst writes the size of the burst buffer. It refills like SetQuota.
func (t *Tree) SetBurst(group string, burst time.Duration) error {
	return t.write(group, t.burstFile(), formatMicros(burst))
}

// Weight reads cpu.weight (v2) or cpu.shares (v1), in the file's own unit.
func (t *Tree) Weight(group string) (int64, error) { return t.readInt(group, t.weightFile()) }

// SetWeight writes cpu.weight or cpu.shares. Refused with EINVAL while the group is idle.
func (t *Tree) SetWeight(group string, weight int64) error {
	return t.write(group, t.weightFile(), formatInt(weight))
}

func (t *Tree) weightFile() string {
	if t.version == V2 {
		return "cpu.weight"
	}
	return "cpu.shares"
}

// Idle reads cpu.idle (5.15+): whether the group only gets time that nobody else wants.
func (t *Tree) Idle(group string) (bool, error) {
	n, err := t.readInt(group, "cpu.idle")
	return n != 0, err
}

// SetIdle writes cpu.idle. Setting it forces the weight to the minimum and clearing it to the default: the former
// weight is lost, so the caller keeps it.
func (t *Tree) SetIdle(group string, idle bool) error {
	text := "0"
	if idle {
		text = "1"
	}
	return t.write(group, "cpu.idle", text)
}

// CPUs reads the CPUs that the group is bound to; empty where it inherits (v2).
func (t *Tree) CPUs(group string) (cpu.Set, error) {
	data, err := t.fs.ReadFile(t.cpusFile(group))
	if err != nil {
		return nil, err
	}
	set, err := cpu.ParseSet(string(data))
	return set, t.wrap(group, "cpuset.cpus", err)
}

// SetCPUs binds the group to a set of CPUs.
func (t *Tree) SetCPUs(group string, set cpu.Set) error {
	return t.fs.WriteFile(t.cpusFile(group), []byte(set.String()))
}

func (t *Tree) cpusFile(group string) string { return path.Join(".", t.cpuset, group, "cpuset.cpus") }

// Counters reads what the kernel counted for a group.
func (t *Tree) Counters(group string) (cpu.Counters, error) {
	data, err := t.read(group, "cpu.stat")
	if err != nil {
		return cpu.Counters{}, err
	}
	c, err := parseStat(data)
	if err != nil || t.version == V2 || t.acct == "" {
		return c, t.wrap(group, "cpu.stat", err)
	}
	usage, err := t.fs.ReadFile(path.Join(t.acct, group, "cpuacct.usage"))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil // a group made in the cpu hierarchy alone
	}
	if err != nil {
		return cpu.Counters{}, err
	}
	n, err := parseInt(usage)
	c.Usage, c.HasUsage = time.Duration(n), err == nil
	return c, t.wrap(group, "cpuacct.usage", err)
}

// ThrottledLocal is the time throttled by the group's own quota, without its ancestors' (cpu.stat.local, 6.6+).
func (t *Tree) ThrottledLocal(group string) (time.Duration, error) {
	data, err := t.read(group, "cpu.stat.local")
	if err != nil {
		return 0, err
	}
	if t.version == V2 {
		n, err := parseKey(data, "throttled_usec")
		return time.Duration(n) * time.Microsecond, t.wrap(group, "cpu.stat.local", err)
	}
	n, err := parseKey(data, "throttled_time")
	return time.Duration(n), t.wrap(group, "cpu.stat.local", err)
}

func (t *Tree) read(group, file string) ([]byte, error) {
	return t.fs.ReadFile(path.Join(t.Dir(group), file))
}

func (t *Tree) write(group, file, text string) error {
	return t.fs.WriteFile(path.Join(t.Dir(group), file), []byte(text))
}

func (t *Tree) readInt(group, file string) (int64, error) {
	data, err := t.read(group, file)
	if err != nil {
		return 0, err
	}
	n, err := parseInt(data)
	return n, t.wrap(group, file, err)
}

func (t *Tree) readMicros(group, file string) (time.Duration, error) {
	n, err := t.readInt(group, file)
	if err != nil {
		return 0, err
	}
	d, err := micros(n)
	return d, t.wrap(group, file, err)
}

func (t *Tree) wrap(group, file string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", path.Join(t.Dir(group), file), err)
}
