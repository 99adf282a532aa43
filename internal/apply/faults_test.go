package apply

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"

	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
	"plimsoll/internal/workload"
)

// errKilled is what a dead process panics with.
var errKilled = errors.New("killed")

// mishap is something that goes wrong at one of our writes.
type mishap struct {
	name   string
	before func(n *node, group string) error // instead of the write, or before it
	after  func(n *node, group string, knob plan.Knob)
}

func mishaps() []mishap {
	list := []mishap{
		{name: "vanish", before: func(n *node, group string) error { n.k.RemoveGroup(group); return nil }},
		{name: "recreate", after: func(n *node, group string, _ plan.Knob) {
			n.k.RemoveGroup(group)
			n.k.AddGroup(group)
		}},
		{name: "killed before", before: func(*node, string) error { panic(errKilled) }},
		{name: "killed after", after: func(*node, string, plan.Knob) { panic(errKilled) }},
		{name: "trample", after: trample},
	}
	for _, errno := range []syscall.Errno{syscall.EINVAL, syscall.EBUSY, syscall.EIO, syscall.EPERM} {
		list = append(list, mishap{name: errno.Error(), before: func(*node, string) error { return errno }})
	}
	return list
}

// trample is another program that writes right after us.
func trample(n *node, group string, knob plan.Knob) {
	value := plan.Value("7ms")
	switch {
	case knob == plan.Weight || knob == plan.Idle:
		return
	case knob == plan.Quota && n.config.DividesBurst:
		return // it would ruin the burst, and nobody could tell what it was
	case knob == plan.Quota && group == "/pod":
		value = "183ms"
	case knob == plan.Quota:
		value = "87ms"
	}
	n.foreign(group, knob, value)
}

// inject lets the at-th write from now go wrong, and watches that no write is one of what is there already. The
// function tells how many writes there were.
func (n *node) inject(m mishap, at int) (writes func() int) {
	count, due := 0, false
	var group string
	var knob plan.Knob
	hook := func(op, name string, data []byte) error {
		if due {
			due = false
			m.after(n, group, knob)
		}
		if op != "write" {
			return nil
		}
		if held, err := n.k.ReadFile(name); err == nil &&
			strings.TrimSpace(string(held)) == strings.TrimSpace(string(data)) {
			n.t.Errorf("%s: %q is written to %s, which holds it", m.name, data, name)
		}
		if count++; count != at {
			return nil
		}
		group, knob = n.locate(name)
		if m.before != nil {
			return m.before(n, group)
		}
		due = true
		return nil
	}
	n.k.Fault = func(op, name string, data []byte) error {
		fault := n.k.Fault
		n.k.Fault = nil
		defer func() { n.k.Fault = fault }()
		return hook(op, name, data)
	}
	return func() int { return count }
}

// locate is the group and the knob of a file.
func (n *node) locate(name string) (string, plan.Knob) {
	group := strings.TrimPrefix("/"+path.Dir(name), strings.TrimSuffix("/"+n.tree.Dir("/"), "/."))
	switch path.Base(name) {
	case "cpu.max", "cpu.cfs_quota_us":
		return group, plan.Quota
	case "cpu.idle":
		return group, plan.Idle
	case "cpu.weight", "cpu.shares":
		return group, plan.Weight
	}
	return group, plan.Burst
}

// turns is what a lively agent might do. An empty value is a change back.
func turns() [][]plan.Change {
	at := func(group string, knob plan.Knob, to plan.Value) plan.Change {
		return plan.Change{Cgroup: workload.ID{Path: group}, Knob: knob, To: to, Min: "1ms", Max: "300ms",
			Restore: to == ""}
	}
	return [][]plan.Change{
		{at("/pod", plan.Burst, "90ms"), at("/pod/a", plan.Burst, "50ms"), at("/pod/b", plan.Burst, "40ms")},
		{at("/pod", plan.Quota, "260ms"), at("/pod/a", plan.Quota, "150ms")},
		{at("/pod/b", plan.Quota, "300ms"), at("/pod/b", plan.Burst, "41ms")}, // v1 refuses the first
		{at("/pod", plan.Quota, "240ms"), at("/pod/a", plan.Quota, "140ms"), at("/free", plan.Idle, "1")},
		{at("/pod/a", plan.Quota, ""), at("/pod/a", plan.Burst, "")},
		{at("/pod/a", plan.Quota, "130ms"), at("/pod/a", plan.Burst, "60ms"), at("/free", plan.Quota, "200ms")},
		{at("/free", plan.Idle, "0"), at("/free", plan.Burst, "100ms")},
		{at("/free", plan.Weight, "500"), at("/pod/b", plan.Quota, "60ms")},
	}
}

// live is the agent: each change is decided upon what stands in the files. Killed says that it did not live on.
func (n *node) live(ids map[string]workload.ID) (killed bool) {
	defer func() {
		if cause := recover(); cause == errKilled {
			killed = true
		} else if cause != nil {
			panic(cause)
		}
	}()
	for _, turn := range turns() {
		for i := range turn {
			c := &turn[i]
			c.Cgroup = ids[c.Cgroup.Path]
			if held, err := Read(n.tree, c.Cgroup.Path, c.Knob); err == nil {
				c.From = held
			} else {
				c.From = "1ms"
			}
			if e, ok := n.j.Entry(c.Cgroup, c.Knob); c.Restore {
				if c.To = c.From; ok {
					c.To = e.Target()
				}
			}
		}
		n.w.Do(turn)
	}
	return false
}

// restore is the next process. Killed says that it did not live on either.
func (n *node) restore() (killed bool) {
	defer func() {
		if cause := recover(); cause == errKilled {
			killed = true
		} else if cause != nil {
			panic(cause)
		}
	}()
	n.start()
	n.w.Restore(nil, false)
	return false
}

// world makes a node where weights, too, are not the default.
func world(t *testing.T, c sim.Config) (*node, map[string]workload.ID) {
	n := newNode(t, c)
	n.must(n.tree.SetWeight("/free", 300))
	ids := map[string]workload.ID{}
	for _, l := range limits {
		ids[l.group] = n.id(l.group)
	}
	return n, ids
}

// TestMishapAtEveryWrite lets each write of a lively agent go wrong in each way. After the next process has restored,
// every file is as before, byte by byte, or as somebody else wants it.
func TestMishapAtEveryWrite(t *testing.T) {
	for name, c := range map[string]sim.Config{"v1": v1, "v2": v2, "v2 divides burst": divides} {
		for _, m := range mishaps() {
			t.Run(name+" "+m.name, func(t *testing.T) {
				total := 1
				for at := 0; at <= total; at++ {
					n, ids := world(t, c)
					want := n.files()
					writes := n.inject(m, at)
					n.live(ids)
					if at == 0 {
						total = writes()
					}
					n.k.Fault = nil
					n.adjust(want, ids)
					n.restore()
					n.wantFiles(fmt.Sprintf("%s at write %d of %d", m.name, at, total), want)
					n.wantIdempotent()
					if t.Failed() {
						return
					}
				}
				if total < 15 {
					t.Errorf("only %d writes", total)
				}
			})
		}
	}
}

// adjust makes of what was there what must be there now: without the groups that are gone, with what others wrote.
func (n *node) adjust(want map[string]string, ids map[string]workload.ID) {
	for name := range want {
		group, _ := n.locate(name)
		inode, err := n.tree.Inode(group)
		switch {
		case err != nil:
			delete(want, name)
		case ids[group].Path != "" && ids[group].Inode != inode:
			want[name] = n.files()[name]
		}
	}
	for _, w := range n.k.Writes() {
		if w.Foreign && w.Err == nil {
			want[w.Name] = n.spell(w.Name, w.Data)
		}
	}
}

// spell is how a file shows what was written to it: cpu.max has the period, and a newline ends each.
func (n *node) spell(name, data string) string {
	if strings.HasSuffix(name, "cpu.max") && !strings.Contains(data, " ") {
		data += " 100000"
	}
	return data + "\n"
}

// TestKilledTwice kills the agent at every write, and then the process that restores at every write of its own.
func TestKilledTwice(t *testing.T) {
	kills := []mishap{}
	for _, m := range mishaps() {
		if strings.HasPrefix(m.name, "killed") {
			kills = append(kills, m)
		}
	}
	for name, c := range map[string]sim.Config{"v1": v1, "v2": v2, "v2 divides burst": divides} {
		for _, first := range kills {
			for _, second := range kills {
				t.Run(name+" "+first.name+" "+second.name, func(t *testing.T) { killTwice(t, c, first, second) })
			}
		}
	}
}

func killTwice(t *testing.T, c sim.Config, first, second mishap) {
	runs := 0
	for at, killed := 1, true; killed; at++ {
		for again, killedAgain := 1, true; killedAgain; again++ {
			n, ids := world(t, c)
			want := n.files()
			n.inject(first, at)
			killed = n.live(ids)
			n.inject(second, again)
			killedAgain = n.restore()
			n.k.Fault = nil
			n.restore()
			n.wantFiles(fmt.Sprintf("killed at write %d, and again at %d", at, again), want)
			n.wantIdempotent()
			runs++
			if t.Failed() {
				return
			}
		}
	}
	if runs < 60 {
		t.Errorf("only %d runs", runs)
	}
}
