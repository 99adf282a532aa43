// Package cgrouptest gives tests control groups of the running kernel, cgroup v1 or v2. A group that it made is gone
// when the test ends, with its processes, also when the test fails.
//
// A test that needs what this machine has not got is skipped, and fails instead where PLIMSOLL_REQUIRE_KERNEL is set,
// as it is in the tiers that run as root on a machine with a cpu controller: there a skip would hide something. Two
// skips are good there, too: that of Need on a kernel older than the feature, and that of Elsewhere.
package cgrouptest

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
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgroup"
)

const (
	rootVar    = "PLIMSOLL_CGROUP_ROOT"
	requireVar = "PLIMSOLL_REQUIRE_KERNEL"
	namePrefix = "plimsoll-test-"
)

// Group is a control group that a test made.
type Group struct {
	Path   string // below the cpu hierarchy (v1) or the root (v2)
	t      testing.TB
	dir    *cgroup.Dir
	tree   *cgroup.Tree
	cpuset string // the same in a cpuset hierarchy of its own, or ""
	acct   string // directory of the same group in a cpuacct hierarchy of its own, or ""
	cpu    bool   // the cpu controller is enabled for children (v2)
}

// Root is where the control groups are mounted.
func Root() string {
	if root := os.Getenv(rootVar); root != "" {
		return root
	}
	return "/sys/fs/cgroup"
}

// Skip skips the test, or fails it where the kernel's tests must run.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(requireVar) != "" {
		t.Fatalf(requireVar+" is set, but "+format, args...)
	}
	t.Skipf(format, args...)
}

// Elsewhere skips the test on a machine of another kind than it is for, also where the kernel's tests must run: where
// names the tier, script or cell that has such a machine and does run it.
func Elsewhere(t testing.TB, where, format string, args ...any) {
	t.Helper()
	t.Skipf("%s; run by %s", fmt.Sprintf(format, args...), where)
}

// Need skips the test if a feature is missing. That is an excuse on a kernel older than the feature only: on a newer
// one the test fails, for then the probe is wrong or the feature is spelled otherwise.
func Need(t testing.TB, f cgroup.Feature) {
	t.Helper()
	if f.State == cgroup.Yes {
		return
	}
	release := Release(t)
	if f.State == cgroup.No && f.Since != "" && !AtLeast(release, f.Since) {
		t.Skipf("%s: kernel %s is older than %s", f.Name, release, f.Since)
	}
	Skip(t, "%s is %s on kernel %s: %s", f.Name, f.State, release, f.Detail)
}

// Release is the running kernel's release, as uname -r says it.
func Release(t testing.TB) string {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	return unix.ByteSliceToString(u.Release[:])
}

// AtLeast says whether a kernel release is a version or a later one.
func AtLeast(release, version string) bool {
	return slices.Compare(numbers(release), numbers(version)) >= 0
}

// numbers reads the first two numbers of "6.1.0-28-cloud-amd64".
func numbers(release string) []int {
	var list []int
	for _, field := range strings.FieldsFunc(release, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(field); err == nil && len(list) < 2 {
			list = append(list, n)
		}
	}
	return list
}

// New makes a group at the top of the hierarchy, without a limit.
func New(t testing.TB) *Group {
	t.Helper()
	dir := cgroup.NewDir(Root())
	tree, err := cgroup.Detect(dir)
	if err != nil {
		Skip(t, "there is no cpu controller: %v", err)
	}
	sweep(dir, tree)
	if tree.Version() == cgroup.V2 {
		enableRoot(t, dir)
	}
	for n := 0; ; n++ {
		g := &Group{Path: fmt.Sprintf("/%s%d-%d", namePrefix, os.Getpid(), n), t: t, dir: dir, tree: tree}
		err := dir.Mkdir(tree.Dir(g.Path))
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			Skip(t, "cannot make groups: %v", err)
		}
		g.made(err)
		return g
	}
}

// Child makes a group in the group. On v2 a group with limited children has no processes of its own.
func (g *Group) Child(name string) *Group {
	g.t.Helper()
	if g.tree.Version() == cgroup.V2 && !g.cpu {
		if err := g.dir.WriteFile(path.Join(g.tree.Dir(g.Path), "cgroup.subtree_control"), []byte("+cpu")); err != nil {
			g.t.Fatal(err)
		}
		g.cpu = true
	}
	c := &Group{Path: path.Join(g.Path, name), t: g.t, dir: g.dir, tree: g.tree}
	c.made(g.dir.Mkdir(g.tree.Dir(c.Path)))
	return c
}

// made sees to what comes after the directory in the cpu hierarchy: its removal, and the one in cpuacct.
func (g *Group) made(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(g.Remove)
	if _, err := g.dir.Inode("cpuacct/cpuacct.usage"); g.tree.Version() == cgroup.V2 || err != nil {
		return
	}
	if _, err := g.dir.Inode(path.Join("cpuacct", g.Path)); err == nil {
		return // the same hierarchy as cpu
	}
	acct := path.Join("cpuacct", g.Path)
	if err := g.dir.Mkdir(acct); err != nil {
		g.t.Fatal(err)
	}
	g.acct = acct
}

// Tree is the hierarchy that the group is in.
func (g *Group) Tree() *cgroup.Tree { return g.tree }

// Dir is the FS that the hierarchy is read through.
func (g *Group) Dir() *cgroup.Dir { return g.dir }

// File is the real path of one of the group's files.
func (g *Group) File(name string) string {
	return path.Join(Root(), g.tree.Dir(g.Path), name)
}

// Limit gives the group a quota per 100 ms.
func (g *Group) Limit(quota time.Duration) {
	g.t.Helper()
	if err := g.tree.SetQuota(g.Path, quota); err != nil {
		g.t.Fatal(err)
	}
}

// Prevail gives the group the greatest weight, so that other groups of the machine do not keep it from its limit.
func (g *Group) Prevail() {
	g.t.Helper()
	heaviest := map[cgroup.Version]int64{cgroup.V1: 1 << 18, cgroup.V2: 10000}[g.tree.Version()]
	if err := g.tree.SetWeight(g.Path, heaviest); err != nil {
		g.t.Fatal(err)
	}
}

// removeWait is how long killed processes may take to leave their group.
const removeWait = 5 * time.Second

// Remove kills what runs in the group and below it and removes it. It is done at the end of the test in any case.
func (g *Group) Remove() {
	g.t.Helper()
	for _, dir := range g.dirs() {
		if err := clear(g.dir, dir, time.Now().Add(removeWait)); err != nil {
			g.t.Errorf("a test's group stays behind: %v", err)
		}
	}
}

// clear removes a directory of groups, deepest first.
func clear(d *cgroup.Dir, dir string, deadline time.Time) error {
	children, err := d.Dirs(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, c := range children {
		if err := clear(d, path.Join(dir, c), deadline); err != nil {
			return err
		}
	}
	for {
		if err := kill(d, dir); err != nil {
			return err
		}
		err := d.Rmdir(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func kill(d *cgroup.Dir, dir string) error {
	data, err := d.ReadFile(path.Join(dir, "cgroup.procs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, text := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(text); err == nil && pid > 1 && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
		}
	}
	return nil
}

// sweep removes the groups of test binaries that were killed.
func sweep(d *cgroup.Dir, tree *cgroup.Tree) {
	for _, parent := range []string{tree.Dir("/"), "cpuacct", "cpuset"} {
		names, err := d.Dirs(parent)
		if err != nil {
			continue
		}
		for _, name := range names {
			rest, ours := strings.CutPrefix(name, namePrefix)
			pid, _, _ := strings.Cut(rest, "-")
			if n, err := strconv.Atoi(pid); ours && err == nil && syscall.Kill(n, 0) == syscall.ESRCH {
				_ = clear(d, path.Join(parent, name), time.Now()) // another test may be at it
			}
		}
	}
}

// enableRoot enables the cpu controller for the children of the root (v2), until the test ends.
func enableRoot(t testing.TB, d *cgroup.Dir) {
	t.Helper()
	const file = "cgroup.subtree_control"
	data, err := d.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(strings.Fields(string(data)), "cpu") {
		return
	}
	if err := d.WriteFile(file, []byte("+cpu")); err != nil {
		Skip(t, "cannot hand the cpu controller on: %v", err)
	}
	t.Cleanup(func() {
		if err := d.WriteFile(file, []byte("-cpu")); err != nil {
			t.Errorf("the root's controllers stay changed: %v", err)
		}
	})
}
