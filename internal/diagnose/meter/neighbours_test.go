package meter

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/probe/runq"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// groups is a tree (v2) in memory: who owns each group.
type groups map[string]uint32

func (g groups) ReadFile(name string) ([]byte, error) {
	if name == "cgroup.controllers" {
		return []byte("cpu\n"), nil
	}
	return nil, fs.ErrNotExist
}

func (g groups) WriteFile(string, []byte) error { return fs.ErrPermission }

func (g groups) Dirs(name string) (list []string, err error) {
	for group := range g {
		if group != "." && path.Dir(group) == name {
			list = append(list, path.Base(group))
		}
	}
	slices.Sort(list)
	return list, nil
}

func (g groups) Inode(name string) (uint64, error) {
	if _, there := g[name]; !there {
		return 0, fs.ErrNotExist
	}
	return inodeOf(name), nil
}

func inodeOf(name string) (n uint64) {
	for _, c := range name {
		n = n*31 + uint64(c)
	}
	return n
}

func (g groups) Owner(name string) (uint32, error) { return g[name], nil }

func detect(t *testing.T, g groups) *cgroup.Tree {
	t.Helper()
	tree, err := cgroup.Detect(g)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// add makes so many groups in another one.
func (g groups) add(in string, n int, owner uint32) {
	for i := range n {
		g[fmt.Sprintf("%s/%05d", in, i)] = owner
	}
}

// numbers are programs that have as many numbers as those of package runq.
type numbers struct {
	waitPrograms
	slots map[uint64]runq.Slot
	next  runq.Slot
	last  runq.Group
	set   int
}

func (p *numbers) Set(g runq.Group) (runq.Slot, error) {
	p.last = g
	p.set++
	if slot, there := p.slots[g.Inode]; there {
		return slot, nil
	}
	if len(p.slots) == mostGroups {
		return 0, errors.New("the table is full")
	}
	p.next++
	p.slots[g.Inode] = p.next
	return p.next, nil
}

func (p *numbers) Forget(inode uint64) error { delete(p.slots, inode); return nil }

func (p *numbers) Read(runq.Slot, time.Duration) (runq.Sums, error) { return runq.Sums{}, nil }
func (p *numbers) Pairs() ([]runq.Pair, error)                      { return nil, nil }
func (p *numbers) Lost() (tasks, pairs int64)                       { return 0, 0 }

func (p *numbers) Lengths(runq.Class) (n [runq.Buckets]int64, err error) { return n, nil }

// cpuset is a tree of which one group is bound to CPUs.
type cpuset struct {
	groups
	group, cpus string
}

func (c *cpuset) ReadFile(name string) ([]byte, error) {
	if name == c.group+"/cpuset.cpus" {
		return []byte(c.cpus + "\n"), nil
	}
	return c.groups.ReadFile(name)
}

// TestFactsAreKeptUp: the name and the CPUs of a container, which are not known or not final when it begins, are the
// present ones within a minute, and one of which nothing has changed is left alone.
func TestFactsAreKeptUp(t *testing.T) {
	tree := &cpuset{groups{".": 0, "pod": 0}, "pod", "0-3"}
	at, err := cgroup.Detect(tree)
	if err != nil {
		t.Fatal(err)
	}
	programs := &numbers{slots: map[uint64]runq.Slot{}}
	one := workload.Container{Name: "pod1"}
	one.Path, one.Inode = "/pod", inodeOf("pod")
	found := &pods{{Containers: []workload.Container{one}}}
	w := NewWaits(at, found, slog.New(slog.DiscardHandler))
	w.meter = newMeter(at, programs, runq.Options{Groups: mostGroups})
	w.meter.online = cpu.Set{0, 1, 2, 3}
	for i, c := range []struct {
		name, cpus string
		set        int
	}{{"pod1", "0-3", 1}, {"pod1", "0-3", 1}, {"shop/web/app", "0-3", 2}, {"shop/web/app", "1", 3},
		{"shop/web/app", "1", 3}} {
		(*found)[0].Containers[0].Name, tree.cpus = c.name, c.cpus
		for range cpusEvery {
			w.follow()
		}
		slot := programs.slots[one.Inode]
		if got := programs.last.CPUs.String(); got != c.cpus || w.meter.names[slot].Name != c.name ||
			programs.set != c.set {
			t.Errorf("look %d: %q on CPUs %s, set %d times; want %+v", i, w.meter.names[slot].Name, got, programs.set,
				c)
		}
	}
}

// TestAUserLeavesNumbers: a user who makes groups without end has some of the numbers, and root's groups leave some to
// the containers that come later. The status says whom there is no number for.
func TestAUserLeavesNumbers(t *testing.T) {
	for _, c := range []struct {
		name                         string
		users, nested, roots, before int
		containers, numbers          int
		problem                      string
	}{
		{"a user", 5000, 300, 10, 10, 50, 4 + mostOfUser + 10 + 50, ""},
		{"root", 0, 0, 3200, 0, 50, mostGroups*3/4 + 50, report.ProblemWaitsNames},
		{"containers", 0, 0, 10, 0, 4200, mostGroups, fmt.Sprintf(report.ProblemWaitsMissing, 4200-4096+15)},
	} {
		tree := groups{".": 0, "user": 0, "user/u1": 1000, "user/u1/app": 1000, "system": 0, "pods": 0}
		tree.add("system", c.roots, 0)
		tree.add("user/u1", c.users, 1000)
		tree.add("user/u1/app", c.nested, 1000)
		at := detect(t, tree)
		programs := &numbers{slots: map[uint64]runq.Slot{}}
		found := &pods{{}}
		w := NewWaits(at, found, slog.New(slog.DiscardHandler))
		w.meter, w.problem = newMeter(at, programs, runq.Options{Groups: mostGroups}), ""
		for _, n := range []int{c.before, c.containers} {
			(*found)[0].Containers = nil
			for name := range tree {
				if strings.HasPrefix(name, "pods/") {
					delete(tree, name)
				}
			}
			tree.add("pods", n, 0)
			for name := range tree {
				if strings.HasPrefix(name, "pods/") {
					one := workload.Container{}
					one.Path, one.Inode = "/"+name, inodeOf(name)
					(*found)[0].Containers = append((*found)[0].Containers, one)
				}
			}
			w.follow()
		}
		s := report.Status{Now: time.Now()}
		w.Report(&s)
		if got := strings.Join(s.Problems, "; "); got != c.problem || len(programs.slots) != c.numbers {
			t.Errorf("%s: %d numbers and %q, want %d and %q", c.name, len(programs.slots), got, c.numbers, c.problem)
		}
		if n := len(w.meter.subjects) + w.missing; n != c.containers {
			t.Errorf("%s: %d containers are measured or missing, want %d", c.name, n, c.containers)
		}
	}
}
