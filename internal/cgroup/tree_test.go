package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
)

// memFS is a tree of files in memory, by name. A name that ends in "/" is an empty directory.
type memFS map[string]string

func (m memFS) ReadFile(name string) ([]byte, error) {
	text, ok := m[path.Clean(name)]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOENT}
	}
	return []byte(text), nil
}

func (m memFS) WriteFile(name string, data []byte) error {
	if _, err := m.ReadFile(name); err != nil {
		return err
	}
	if len(data) == 0 {
		return nil // the kernel ignores the write
	}
	m[path.Clean(name)] = strings.TrimSuffix(string(data), "\n") + "\n"
	return nil
}

func (m memFS) Dirs(name string) ([]string, error) {
	seen := map[string]bool{}
	prefix := path.Clean(name) + "/"
	if prefix == "./" {
		prefix = ""
	}
	for file := range m {
		if rest, ok := strings.CutPrefix(file, prefix); ok {
			if dir, _, deeper := strings.Cut(rest, "/"); deeper {
				seen[dir] = true
			}
		}
	}
	var names []string
	for dir := range seen {
		names = append(names, dir)
	}
	sort.Strings(names)
	return names, nil
}

func (m memFS) Inode(name string) (uint64, error) {
	name = path.Clean(name)
	for file := range m {
		if file == name || strings.HasPrefix(file, name+"/") {
			return uint64(len(name)), nil
		}
	}
	return 0, &fs.PathError{Op: "stat", Path: name, Err: syscall.ENOENT}
}

func v1FS() memFS {
	return memFS{
		"cpu/cpu.shares":               "1024\n",
		"cpu/lab/cpu.shares":           "1024\n",
		"cpu/lab/cpu.cfs_quota_us":     "-1\n",
		"cpu/lab/cpu.cfs_period_us":    "100000\n",
		"cpu/lab/cgroup.procs":         "",
		"cpu/lab/a/cpu.cfs_quota_us":   "50000\n",
		"cpu/lab/a/cpu.cfs_period_us":  "100000\n",
		"cpu/lab/a/cpu.cfs_burst_us":   "20000\n",
		"cpu/lab/a/cpu.shares":         "512\n",
		"cpu/lab/a/cpu.idle":           "0\n",
		"cpu/lab/a/cpu.stat":           "nr_periods 7\nnr_throttled 3\nthrottled_time 91000001\n",
		"cpu/lab/a/tasks":              "12\n13\n",
		"cpu/lab/a/cgroup.procs":       "12\n",
		"cpuacct/cpuacct.usage":        "9000000001\n",
		"cpuacct/lab/a/cpuacct.usage":  "1000000001\n",
		"cpuset/cpuset.cpus":           "0-3\n",
		"cpuset/lab/a/cpuset.cpus":     "0-1\n",
		"unified/cgroup.controllers":   "hugetlb\n",
		"memory/memory.limit_in_bytes": "1\n",
	}
}

func v2FS() memFS {
	return memFS{
		"cgroup.controllers": "cpuset cpu io memory pids\n", "cgroup.subtree_control": "cpu io memory\n",
		"cpu.stat":             "usage_usec 9000000\nuser_usec 1\nsystem_usec 1\n",
		"lab/cpu.max":          "max 100000\n",
		"lab/cpu.max.burst":    "0\n",
		"lab/cgroup.events":    "populated 1\nfrozen 0\n",
		"lab/a/cpu.max":        "50000 100000\n",
		"lab/a/cpu.max.burst":  "20000\n",
		"lab/a/cpu.weight":     "50\n",
		"lab/a/cpu.idle":       "0\n",
		"lab/a/cpu.stat":       "usage_usec 1000000\nnr_periods 7\nnr_throttled 3\nthrottled_usec 91000\n",
		"lab/a/cgroup.threads": "12\n13\n",
		"lab/a/cgroup.procs":   "12\n",
		"lab/a/cgroup.events":  "populated 0\nfrozen 0\n",
		"lab/a/cpuset.cpus":    "0-1\n",
	}
}

func detect(t *testing.T, fsys FS) *Tree {
	t.Helper()
	tree, err := Detect(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestDetect(t *testing.T) {
	joined := memFS{"cpu,cpuacct/cpu.shares": "2\n", "cpu,cpuacct/cpuacct.usage": "3\n"}
	alone := memFS{"cpu.shares": "2\n", "../cpuacct/cpuacct.usage": "3\n"}
	for _, tt := range []struct {
		name      string
		fsys      memFS
		version   Version
		cpu, acct string
		dirs      string // of a group
	}{
		{"v1, separate", v1FS(), V1, "cpu", "cpuacct", "[cpu/a cpuacct/a]"},
		{"v1, joined", joined, V1, "cpu,cpuacct", "cpu,cpuacct", "[cpu,cpuacct/a]"},
		{"v1, the hierarchy itself", alone, V1, ".", "../cpuacct", "[a ../cpuacct/a]"},
		{"v1 without cpuacct", memFS{"cpu/cpu.shares": "2\n"}, V1, "cpu", "", "[cpu/a]"},
		{"v2", v2FS(), V2, "", "", "[a]"},
	} {
		tree, err := Detect(tt.fsys)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if tree.version != tt.version || tree.cpu != tt.cpu || tree.acct != tt.acct {
			t.Errorf("%s: %v %q %q", tt.name, tree.version, tree.cpu, tree.acct)
		}
		if got := fmt.Sprint(tree.Dirs("/a")); got != tt.dirs {
			t.Errorf("%s: a group has directories %s", tt.name, got)
		}
	}
	for name, fsys := range map[string]memFS{
		"empty":          {},
		"v2 without cpu": {"cgroup.controllers": "cpuset memory\n"},
	} {
		if _, err := Detect(fsys); !errors.Is(err, ErrNoCPU) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// reading is all that a Tree says of one group.
type reading struct {
	Bandwidth cpu.Bandwidth
	Counters  cpu.Counters
	Weight    int64
	Idle      bool
	CPUs      cpu.Set
	Tasks     []int
	Populated bool
	Node      time.Duration
	Children  []string
}

func readAll(t *testing.T, tree *Tree, group string) reading {
	t.Helper()
	var r reading
	var errs [9]error
	r.Bandwidth, errs[0] = tree.Bandwidth(group)
	r.Counters, errs[1] = tree.Counters(group)
	r.Weight, errs[2] = tree.Weight(group)
	r.Idle, errs[3] = tree.Idle(group)
	r.CPUs, errs[4] = tree.CPUs(group)
	r.Tasks, errs[5] = tree.Tasks(group)
	r.Populated, errs[6] = tree.Populated(group)
	r.Node, errs[7] = tree.Usage("/")
	r.Children, errs[8] = tree.Children("/lab")
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTreeReads(t *testing.T) {
	v1 := reading{
		Bandwidth: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms, Burst: 20 * ms},
		Counters:  cpu.Counters{Usage: 1000000001, HasUsage: true, Periods: 7, Throttled: 3, ThrottledTime: 91000001},
		Weight:    512, CPUs: cpu.Set{0, 1}, Tasks: []int{12, 13}, Populated: true, Node: 9000000001,
		Children: []string{"/lab/a"},
	}
	if diff := cmp.Diff(v1, readAll(t, detect(t, v1FS()), "/lab/a")); diff != "" {
		t.Errorf("v1: %s", diff)
	}
	v2 := reading{
		Bandwidth: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms, Burst: 20 * ms},
		Counters:  cpu.Counters{Usage: time.Second, HasUsage: true, Periods: 7, Throttled: 3, ThrottledTime: 91 * ms},
		Weight:    50, CPUs: cpu.Set{0, 1}, Tasks: []int{12, 13}, Node: 9 * time.Second,
		Children: []string{"/lab/a"},
	}
	if diff := cmp.Diff(v2, readAll(t, detect(t, v2FS()), "/lab/a")); diff != "" {
		t.Errorf("v2: %s", diff)
	}
}

func TestTreeWrites(t *testing.T) {
	for _, tt := range []struct {
		fsys memFS
		want map[string]string
	}{
		{v1FS(), map[string]string{"cpu/lab/a/cpu.cfs_quota_us": "75000\n", "cpu/lab/a/cpu.cfs_burst_us": "30000\n",
			"cpu/lab/a/cpu.shares": "2\n", "cpu/lab/a/cpu.idle": "1\n", "cpuset/lab/a/cpuset.cpus": "1,3\n",
			"cpu/lab/cpu.cfs_quota_us": "-1\n"}},
		{v2FS(), map[string]string{"lab/a/cpu.max": "75000\n", "lab/a/cpu.max.burst": "30000\n",
			"lab/a/cpu.weight": "2\n", "lab/a/cpu.idle": "1\n", "lab/a/cpuset.cpus": "1,3\n",
			"lab/cpu.max": "max\n"}},
	} {
		tree := detect(t, tt.fsys)
		err := errors.Join(tree.SetQuota("/lab/a", 75*ms), tree.SetBurst("/lab/a", 30*ms), tree.SetWeight("/lab/a", 2),
			tree.SetIdle("/lab/a", true), tree.SetCPUs("/lab/a", cpu.Set{1, 3}), tree.SetQuota("/lab", cpu.Unlimited))
		if err != nil {
			t.Errorf("%v: %v", tree.Version(), err)
		}
		for name, want := range tt.want {
			if got := tt.fsys[name]; got != want {
				t.Errorf("%v: %s = %q, want %q", tree.Version(), name, got, want)
			}
		}
	}
}

func TestTreeKernelWithoutBurst(t *testing.T) {
	fsys := v2FS()
	delete(fsys, "lab/a/cpu.max.burst")
	tree := detect(t, fsys)
	b, err := tree.Bandwidth("/lab/a")
	if err != nil || b.Burst != 0 || b.Quota != 50*ms {
		t.Errorf("bandwidth = %v, %v", b, err)
	}
	if _, err := tree.Burst("/lab/a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("burst: %v", err)
	}
	if err := tree.SetQuota("/lab/a", 60*ms); err != nil || fsys["lab/a/cpu.max"] != "60000\n" {
		t.Errorf("quota: %v, %q", err, fsys["lab/a/cpu.max"])
	}
}

func TestSetCPUsEmpty(t *testing.T) {
	fsys := v2FS()
	if err := detect(t, fsys).SetCPUs("/lab/a", nil); err != nil || fsys["lab/a/cpuset.cpus"] != "\n" {
		t.Errorf("%v, %q", err, fsys["lab/a/cpuset.cpus"])
	}
}

// burstBug is cpu_max_write as it was before commit 49217ea147df.
type burstBug struct{ memFS }

func (b burstBug) WriteFile(name string, data []byte) error {
	if strings.HasSuffix(name, "/cpu.max") {
		file := path.Join(path.Dir(name), "cpu.max.burst")
		was, err := parseMicros(strings.TrimSpace(b.memFS[file]))
		if err != nil {
			return err
		}
		b.memFS[file] = formatMicros(was/1000) + "\n"
	}
	return b.memFS.WriteFile(name, data)
}

func TestSetQuotaKeepsBurst(t *testing.T) {
	fsys := burstBug{v2FS()}
	if err := detect(t, fsys).SetQuota("/lab/a", 80*ms); err != nil {
		t.Fatal(err)
	}
	if got := fsys.memFS["lab/a/cpu.max.burst"]; got != "20000\n" {
		t.Errorf("burst after a write of the quota: %q", got)
	}
}

func TestTreeBadText(t *testing.T) {
	for file, read := range map[string]func(*Tree) error{
		"cpu/lab/a/cpu.cfs_quota_us":  func(t *Tree) error { _, err := t.Bandwidth("/lab/a"); return err },
		"cpu/lab/a/cpu.cfs_period_us": func(t *Tree) error { _, err := t.Bandwidth("/lab/a"); return err },
		"cpu/lab/a/cpu.cfs_burst_us":  func(t *Tree) error { _, err := t.Bandwidth("/lab/a"); return err },
		"cpu/lab/a/cpu.shares":        func(t *Tree) error { _, err := t.Weight("/lab/a"); return err },
		"cpu/lab/a/cpu.idle":          func(t *Tree) error { _, err := t.Idle("/lab/a"); return err },
		"cpu/lab/a/cpu.stat":          func(t *Tree) error { _, err := t.Counters("/lab/a"); return err },
		"cpuacct/lab/a/cpuacct.usage": func(t *Tree) error { _, err := t.Counters("/lab/a"); return err },
		"cpu/lab/a/tasks":             func(t *Tree) error { _, err := t.Tasks("/lab/a"); return err },
		"cpuset/lab/a/cpuset.cpus":    func(t *Tree) error { _, err := t.CPUs("/lab/a"); return err },
		"cpuacct/cpuacct.usage":       func(t *Tree) error { _, err := t.Usage("/"); return err },
	} {
		for _, text := range []string{"12", "x y\n", "-7\n"} {
			fsys := v1FS()
			fsys[file] = text
			err := read(detect(t, fsys))
			if text == "x y\n" && strings.HasPrefix(path.Base(file), "cpu.stat") && err == nil {
				continue // an unknown key
			}
			if err == nil || !strings.Contains(err.Error(), path.Base(file)) {
				t.Errorf("%s = %q: error %v does not name the file", file, text, err)
			}
		}
	}
}

// TestFile: the name of a group's file is that of path.Join, and costs one allocation.
func TestFile(t *testing.T) {
	for _, dir := range []string{"", ".", "cpu", "cpu,cpuacct"} {
		tree := &Tree{cpu: dir}
		for _, group := range []string{"/", "/a", "/a/b.slice", "a", "/a//b", "/a/../b", "/a/"} {
			if got, want := tree.file(group, "cpu.stat"), path.Join(".", dir, group, "cpu.stat"); got != want {
				t.Errorf("below %q, %q: %q, want %q", dir, group, got, want)
			}
		}
		if n := testing.AllocsPerRun(10, func() {
			tree.file("/kubepods.slice/kubepods-pod1.slice", "cpu.stat")
		}); n > 1 && dir != "." {
			t.Errorf("below %q: %v allocations", dir, n)
		}
	}
}

func TestPopulated(t *testing.T) {
	fsys := v1FS()
	tree := detect(t, fsys)
	if got, err := tree.Populated("/lab"); err != nil || !got {
		t.Errorf("v1, a task below: %v, %v", got, err)
	}
	fsys["cpu/lab/a/cgroup.procs"] = ""
	if got, err := tree.Populated("/lab"); err != nil || got {
		t.Errorf("v1, no task: %v, %v", got, err)
	}
	v2 := detect(t, v2FS())
	for group, want := range map[string]bool{"/": true, "/lab": true, "/lab/a": false} {
		if got, err := v2.Populated(group); err != nil || got != want {
			t.Errorf("v2 %s: %v, %v", group, got, err)
		}
	}
	for _, tree := range []*Tree{tree, v2} {
		if _, err := tree.Populated("/gone"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v: a group that is gone: %v", tree.Version(), err)
		}
	}
}
