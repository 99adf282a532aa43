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
	sysctls FS // /proc/sys/kernel; nil: none
}

// ErrNoCPU says that there is no cpu controller below the root.
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

// WithSysctls has the tree know the kernel's settings that belong to control groups: fsys is /proc/sys/kernel.
func (t *Tree) WithSysctls(fsys FS) *Tree {
	t.sysctls = fsys
	return t
}

// Version is the cgroup version of the cpu controller.
func (t *Tree) Version() Version { return t.version }

// Dir is the directory of a group below the FS root, in the hierarchy that has the cpu controller.
func (t *Tree) Dir(group string) string { return below(t.cpu, group) }

// Dirs are the directories of a group: Dir, and that of cpuacct, which counts CPU time, where that one is apart (v1).
func (t *Tree) Dirs(group string) []string {
	if t.acct == "" || t.acct == t.cpu {
		return []string{t.Dir(group)}
	}
	return []string{t.Dir(group), below(t.acct, group)}
}

// Children lists the groups directly below a group, sorted.
func (t *Tree) Children(group string) ([]string, error) {
	names, err := t.fs.Dirs(t.Dir(group))
	for i, name := range names {
		names[i] = childOf(group, name)
	}
	return names, err
}

// Tasks lists the threads of a group itself, not of its children.
func (t *Tree) Tasks(group string) ([]int, error) {
	name := "tasks"
	if t.version == V2 {
		name = "cgroup.threads"
	}
	data, err := t.read(group, name)
	if err != nil {
		// A domain group with threaded children refuses cgroup.threads with EOPNOTSUPP.
		name = "cgroup.procs"
		data, err = t.read(group, name)
	}
	if err != nil {
		return nil, err
	}
	tasks, err := parsePIDs(data)
	return tasks, t.wrap(group, name, err)
}

// Processes lists the processes of a group itself, not of its children. A process of another PID namespace is 0.
func (t *Tree) Processes(group string) ([]int, error) {
	const name = "cgroup.procs"
	data, err := t.read(group, name)
	if err != nil {
		return nil, err
	}
	pids, err := parsePIDs(data)
	return pids, t.wrap(group, name, err)
}

// Populated says whether a process is in the group or below it.
func (t *Tree) Populated(group string) (bool, error) {
	if t.version == V1 {
		return t.populatedV1(group)
	}
	data, err := t.read(group, "cgroup.events")
	if errors.Is(err, fs.ErrNotExist) && path.Clean(group) == "/" {
		return true, nil // the root has no such file, and is never empty
	}
	if err != nil {
		return false, err
	}
	populated, err := parseKey(data, "populated", parseFlag)
	return populated, t.wrap(group, "cgroup.events", err)
}

func (t *Tree) populatedV1(group string) (bool, error) {
	data, err := t.read(group, "cgroup.procs")
	if err != nil || len(data) > 0 {
		return err == nil, err
	}
	children, err := t.Children(group)
	if err != nil {
		return false, err
	}
	for _, c := range children {
		populated, err := t.populatedV1(c)
		if populated || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return populated, err
		}
	}
	return false, nil
}

// Bandwidth reads quota, period and burst. A kernel without burst reads as burst 0. They are in several files, and the
// kernel may scale a short period, and quota and burst with it, in between (kernel/sched/fair.c,
// sched_cfs_period_timer): so those of a short period are read until two readings agree.
func (t *Tree) Bandwidth(group string) (cpu.Bandwidth, error) {
	b, err := t.bandwidth(group)
	for n := 0; n < 3 && err == nil && b.Period < cpu.DefaultPeriod; n++ {
		last := b
		if b, err = t.bandwidth(group); b == last {
			break
		}
	}
	return b, err
}

func (t *Tree) bandwidth(group string) (cpu.Bandwidth, error) {
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
	return readValue(t, group, "cpu.max", parseMax)
}

func (t *Tree) bandwidthV1(group string) (cpu.Bandwidth, error) {
	quota, err := readValue(t, group, "cpu.cfs_quota_us", parseQuotaV1)
	if err != nil {
		return cpu.Bandwidth{}, err
	}
	period, err := readValue(t, group, "cpu.cfs_period_us", parsePeriod)
	return cpu.Bandwidth{Quota: quota, Period: period}, err
}

// Burst reads the burst buffer's size. The error is fs.ErrNotExist on a kernel without (below 5.14).
func (t *Tree) Burst(group string) (time.Duration, error) {
	return readValue(t, group, t.burstFile(), parseMicros)
}

func (t *Tree) burstFile() string {
	if t.version == V2 {
		return "cpu.max.burst"
	}
	return "cpu.cfs_burst_us"
}

// SetQuota writes the quota and leaves period and burst as they are: cpu.max keeps the period when only a quota is
// written (cpu_period_quota_parse), so that a period that its owner writes meanwhile is kept. Every such write refills
// the group's runtime (kernel/sched/core.c, tg_set_cfs_bandwidth): the caller accounts for it.
func (t *Tree) SetQuota(group string, quota time.Duration) error {
	if t.version == V1 {
		return t.write(group, "cpu.cfs_quota_us", formatQuotaV1(quota))
	}
	before, err := t.Burst(group)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := t.write(group, "cpu.max", formatQuotaV2(quota)); err != nil || before == 0 {
		return err
	}
	return t.mendBurst(group, before)
}

// ErrBurst says that the quota was written, and that the burst could not be checked or written again after it.
var ErrBurst = errors.New("the quota is written, the burst may be divided by 1000")

// mendBurst writes the burst again where the write of cpu.max has divided it by 1000: cpu_max_write took microseconds
// for nanoseconds from 5.14 until commit 49217ea147df (6.10, and stable kernels such as 6.1.93).
func (t *Tree) mendBurst(group string, before time.Duration) error {
	after, err := t.Burst(group)
	if err == nil && after != before && after == (before/1000).Truncate(time.Microsecond) {
		err = t.SetBurst(group, before)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrBurst, err)
	}
	return err
}

// SetBurst writes the size of the burst buffer. It refills like SetQuota.
func (t *Tree) SetBurst(group string, burst time.Duration) error {
	return t.write(group, t.burstFile(), formatMicros(burst))
}

// Weight reads cpu.weight (v2) or cpu.shares (v1), in the file's own unit.
func (t *Tree) Weight(group string) (int64, error) {
	return readValue(t, group, t.weightFile(), decimal)
}

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

// Idle reads cpu.idle (5.15+): whether the group only gets CPU time that no other group needs.
func (t *Tree) Idle(group string) (bool, error) {
	return readValue(t, group, "cpu.idle", parseFlag)
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

// Counters reads the kernel's counters of a group.
func (t *Tree) Counters(group string) (cpu.Counters, error) {
	c, err := t.Stat(group)
	if err != nil || c.HasUsage {
		return c, err
	}
	c.Usage, err = t.Usage(group)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil // a group made in the cpu hierarchy alone
	}
	c.HasUsage = err == nil
	return c, err
}

// Stat reads cpu.stat. On v1 it does not have the CPU time used: that is in another file, Usage.
func (t *Tree) Stat(group string) (cpu.Counters, error) {
	data, err := t.read(group, "cpu.stat")
	if err != nil {
		return cpu.Counters{}, err
	}
	c, err := parseStat(data)
	return c, t.wrap(group, "cpu.stat", err)
}

// Usage reads the CPU time that a group has used; that of the root "/" is the whole machine's, finer than
// /proc/stat. The error is fs.ErrNotExist where nothing counts: a v1 group in the cpu hierarchy alone.
func (t *Tree) Usage(group string) (time.Duration, error) {
	if t.version == V2 {
		data, err := t.read(group, "cpu.stat")
		if err != nil {
			return 0, err
		}
		usage, err := parseKey(data, "usage_usec", parseMicros)
		return usage, t.wrap(group, "cpu.stat", err)
	}
	if t.acct == "" {
		return 0, fmt.Errorf("cpuacct: %w", fs.ErrNotExist)
	}
	name := fileBelow(t.acct, group, "cpuacct.usage")
	data, err := t.fs.ReadFile(name)
	if err != nil {
		return 0, err
	}
	text, err := line(data)
	if err == nil {
		var usage time.Duration
		if usage, err = parseNanos(text); err == nil {
			return usage, nil
		}
	}
	return 0, fmt.Errorf("%s: %w", name, err)
}

// file is the name of a group's file below the FS root.
func (t *Tree) file(group, name string) string { return fileBelow(t.cpu, group, name) }

func (t *Tree) read(group, name string) ([]byte, error) { return t.fs.ReadFile(t.file(group, name)) }

func (t *Tree) write(group, name, text string) error {
	return t.fs.WriteFile(t.file(group, name), []byte(text))
}

// readValue reads a file of one value.
func readValue[T any](t *Tree, group, file string, parse func(string) (T, error)) (T, error) {
	var none T
	data, err := t.read(group, file)
	if err != nil {
		return none, err
	}
	text, err := line(data)
	if err != nil {
		return none, t.wrap(group, file, err)
	}
	v, err := parse(text)
	if err != nil {
		return none, t.wrap(group, file, err)
	}
	return v, nil
}

func (t *Tree) wrap(group, file string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", t.file(group, file), err)
}
