package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/capability"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/task"
)

// need is a feature that a capability is needed for, and the words that name it where it is lost.
type need struct {
	capability capability.Capability
	feature    string
	named      string
	below      string // kernels from this release on do not need it; "": all do
}

// The features that take a capability.
const (
	forEvents   = "throttle events"
	forRealtime = "answers at real-time priority"
	forSlices   = "slices of tasks of other users"
	forOwners   = "control groups of other users"
	forShield   = "the shield"
	forCookies  = "core-scheduling cookies"
)

// needs is why the unit file and the chart grant capabilities: nothing else is lost without one, and what is lost is
// named by the status or the log.
func needs() []need {
	return []need{
		{capability.BPF, forEvents, "this process lacks CAP_BPF", ""},
		{capability.Perfmon, forEvents, "this process lacks CAP_PERFMON", ""},
		{capability.Resource, forEvents, "give the process CAP_SYS_RESOURCE", "5.11"},
		{capability.Nice, forRealtime, "real-time priority takes CAP_SYS_NICE", ""},
		{capability.Nice, forSlices, "without CAP_SYS_NICE a slice", ""},
		{capability.Nice, forShield, "CAP_SYS_NICE)", ""},
		{capability.DACOverride, forOwners, "takes CAP_DAC_OVERRIDE", ""},
		{capability.DACOverride, forShield, "it takes CAP_DAC_OVERRIDE", ""},
		{capability.Ptrace, forCookies, "without CAP_SYS_PTRACE a cookie", ""},
	}
}

const (
	lowMemlock = 64 << 10 // the default of kernels below 5.16
	nobody     = 65534
)

// granted is an agent with some capabilities, and groups in which each feature shows that it works.
type granted struct {
	t               *testing.T
	s               *shipped
	home            *cgrouptest.Group // the agent's own
	online, offline *cgrouptest.Group
	tasks           task.Kernel
	events, cookies bool // the kernel has type information for eBPF; it has cookies
	shield          bool // the machine is the test's alone, so that all its tasks may be moved
}

func newGranted(t *testing.T) *granted {
	t.Helper()
	g := &granted{t: t, s: newShipped(t)}
	top := cgrouptest.New(t)
	// Beside the group of its own the agent can make another one without CAP_DAC_OVERRIDE,
	// as under systemd and in a pod.
	unit := cgrouptest.New(t)
	g.home, g.online, g.offline = unit.Child("agent"), top.Child("online"), top.Child("offline")
	realtime(t, unit, g.home)
	g.online.IdleOf(nobody)
	g.offline.Idle()
	_, err := g.tasks.Cookie(os.Getpid())
	g.cookies = err == nil
	_, err = os.Stat("/sys/kernel/btf/vmlinux")
	g.events = err == nil || !g.cookies // the machine of test/vm/core.sh has none
	g.shield = emulated() && top.Tree().CPUSetsSeparate()
	mechanism := "weight"
	if g.cookies {
		mechanism = "coreSched"
	}
	text, own := "", ""
	if g.shield {
		top.Bindable()
		g.online.Bindable()
		g.offline.Bindable()
		text, own = "reserve: {policy: cpuset, shield: true}\n", ", exclusive: strict, request: 1"
	}
	g.s.write(text +
		fmt.Sprintf("strategy: {policy: none, sharePoolThresholdPercent: 100}\ncolocation: {enable: true, "+
			"mechanism: %s, slice: 3ms}\n"+
			"overrides:\n  - {cgroup: %q, class: LS%s}\n  - {cgroup: %q, class: BE}\n", mechanism, g.online.Path, own,
			g.offline.Path))
	files, err := os.ReadDir(g.offline.File(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files { // the owner of a group that is delegated to him owns its files
		if strings.HasPrefix(f.Name(), "cpu.") {
			if err := os.Chown(g.offline.File(f.Name()), nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
	}
	return g
}

// realtime lets tasks of these groups run at real-time priority, parents first (CONFIG_RT_GROUP_SCHED, v1).
func realtime(t *testing.T, groups ...*cgrouptest.Group) {
	t.Helper()
	for _, g := range groups {
		if err := g.Dir().WriteFile(path.Join(g.Tree().Dir(g.Path), "cpu.rt_runtime_us"),
			[]byte("10000")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// lost runs an agent, and says which features do not work and all that the agent's status and its log say.
func (g *granted) lost(keep []capability.Capability, memlock uint64, want []string) (lost []string, said string) {
	g.t.Helper()
	g.s.confined = &confinement{Keep: keep, Memlock: memlock, Group: g.home.File("")}
	agent := g.s.launch("--listen", "") // without CAP_SETUID and CAP_CHOWN, as the unit and the chart do
	if !agent.runs() {
		g.t.Fatalf("the agent does not start:\n%s", agent.log)
	}
	g.s.confined = nil
	end := time.Now().Add(patience(10 * time.Second))
	for lost = g.missing(); !slices.Equal(lost, want) && time.Now().Before(end); lost = g.missing() {
		time.Sleep(20 * ms)
	}
	said = g.s.must("status") + agent.log.String()
	agent.stop(syscall.SIGTERM)
	return lost, said
}

// missing lists the features that do not work now, in the order of their names.
func (g *granted) missing() []string {
	g.t.Helper()
	status := g.s.status()
	works := map[string]bool{}
	if g.events {
		works[forEvents], works[forRealtime] = status.Events.Subscribed, !status.Events.Subscribed ||
			status.Events.Priority == "fifo"
	}
	if weight, err := g.offline.Tree().Weight(g.offline.Path); err != nil {
		g.t.Fatal(err)
	} else {
		works[forOwners] = weight <= 2
	}
	if has, _ := g.tasks.HasSlices(); has {
		works[forSlices] = g.slice() == 3*ms
	}
	if g.cookies {
		works[forCookies] = g.cookie() != 0
	}
	if g.shield {
		works[forShield] = g.shielded()
	}
	var list []string
	for name, does := range works {
		if !does {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// first is a task of a group.
func (g *granted) first(group *cgrouptest.Group) int {
	g.t.Helper()
	tids, err := group.Tree().Tasks(group.Path)
	if err != nil || len(tids) == 0 {
		g.t.Fatalf("no task in %s: %v", group.Path, err)
	}
	return tids[0]
}

func (g *granted) slice() time.Duration {
	g.t.Helper()
	slice, err := g.tasks.Slice(g.first(g.online))
	if err != nil {
		g.t.Fatal(err)
	}
	return slice
}

func (g *granted) cookie() uint64 {
	g.t.Helper()
	cookie, err := g.tasks.Cookie(g.first(g.offline))
	if err != nil {
		g.t.Fatal(err)
	}
	return cookie
}

// shielded says whether this process, which has more capabilities than the agent, is in the shield. Tasks that have
// fewer are moved without CAP_SYS_NICE too (security/commoncap.c, cap_safe_nice).
func (g *granted) shielded() bool {
	g.t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		g.t.Fatal(err)
	}
	return strings.Contains(string(text), "cpuset:/plimsoll-shield")
}

// TestCapabilities: an agent with all capabilities that are granted works; one without one of them loses what needs
// says, names it, and loses nothing else.
func TestCapabilities(t *testing.T) {
	g := newGranted(t)
	release := cgrouptest.Release(t)
	has := map[string]bool{forEvents: g.events, forRealtime: g.events, forOwners: true, forCookies: g.cookies,
		forShield: g.shield}
	has[forSlices], _ = g.tasks.HasSlices()
	if lost, said := g.lost(capability.All(), lowMemlock, nil); len(lost) > 0 {
		if missing, _ := capability.Missing(capability.Resource); len(missing) == 0 ||
			cgrouptest.AtLeast(release, "5.11") {
			t.Fatalf("with all of them the agent lacks %q:\n%s", lost, said)
		}
	}
	for _, c := range capability.All() {
		t.Run(c.String(), func(t *testing.T) {
			g.t, g.s.t = t, t
			var want []string
			var rows []need
			for _, n := range needs() {
				if n.capability == c && has[n.feature] && (n.below == "" || !cgrouptest.AtLeast(release, n.below)) {
					want, rows = append(want, n.feature), append(rows, n)
				}
			}
			slices.Sort(want)
			keep := slices.DeleteFunc(capability.All(), func(other capability.Capability) bool { return other == c })
			lost, said := g.lost(keep, lowMemlock, want)
			if !slices.Equal(lost, want) {
				t.Errorf("lost: %q, want %q", lost, want)
			}
			for _, n := range rows {
				if !strings.Contains(said, n.named) {
					t.Errorf("%s: %q is not in\n%s", n.feature, n.named, said)
				}
			}
			t.Logf("without %s: %q", c, lost)
		})
	}
	g.t, g.s.t = t, t
	g.unlimited(t)
}

// unlimited: with RLIMIT_MEMLOCK as the unit file sets it, CAP_SYS_RESOURCE is not needed.
func (g *granted) unlimited(t *testing.T) {
	t.Helper()
	if missing, err := capability.Missing(capability.Resource); len(missing) > 0 || err != nil {
		t.Logf("this process may not lift RLIMIT_MEMLOCK: run by test/vm/matrix.sh on 5.10:v1 (%v)", err)
		return
	}
	keep := slices.DeleteFunc(capability.All(), func(c capability.Capability) bool { return c == capability.Resource })
	if lost, said := g.lost(keep, math.MaxUint64, nil); len(lost) > 0 {
		t.Errorf("with LimitMEMLOCK=infinity the agent lacks %q:\n%s", lost, said)
	}
}
