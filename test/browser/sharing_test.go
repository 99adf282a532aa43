//go:build browser

package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
	"plimsoll/internal/report"
)

// TestSharing holds what the page says of online beside offline work, of shortfalls and of whose each CPU is against
// the status of a real agent. One container has an exclusive CPU and one is refused them all; online and offline work
// share the rest. It is not parallel: the CPU is taken from every other group of the machine.
func TestSharing(t *testing.T) {
	cgrouptest.NeedTwoCPUs(t)
	s := newSharing(t)
	s.p.until(20*time.Second,
		`document.querySelectorAll('.shortfall tbody tr').length > 1 && document.querySelector('.map .own') && document.querySelector('.reserve h3')`)
	s.p.picture("sharing", true)
	s.sameOwners()
	s.sameShortfall()
	s.p.do(size(360, 780))
	if broken := ask[[]string](s.p, wraps); len(broken) > 0 ||
		ask[bool](s.p, `document.documentElement.scrollWidth > innerWidth`) {
		t.Errorf("at 360 px: figures wrap, or the page is too wide: %q", broken)
	}
	s.p.picture("sharing-narrow", true)
	s.configure("") // neither
	s.p.until(10*time.Second,
		`document.querySelector('.reserve').hidden && !document.querySelector('.colocation .causes')`)
}

// sharing is an agent with colocation and exclusive CPUs, and its page.
type sharing struct {
	t                          *testing.T
	prog                       *program
	p                          *tab
	own, late, online, offline *cgrouptest.Group
}

func newSharing(t *testing.T) *sharing {
	t.Helper()
	parent := cgrouptest.New(t)
	parent.Bindable()
	child := func(name string) *cgrouptest.Group {
		g := parent.Child(name)
		g.Bindable()
		return g
	}
	s := &sharing{t: t, prog: newProgram(t), own: child("own"), late: child("late"), online: child("online"),
		offline: child("offline")}
	s.own.Limit(50 * time.Millisecond)
	s.online.Limit(20 * time.Millisecond) // less than its request
	s.own.Idle()
	s.late.Idle()
	s.online.Spin(1)
	s.offline.Spin(1)
	s.configure("colocation: {enable: true, mechanism: auto}\nreserve: {policy: cpuset}\n")
	s.prog.start("run", "--config", s.prog.config, "--waits")
	_, url := s.prog.start("serve")
	s.p = open(t, chromium(t), url, size(1280, 900), media("prefers-color-scheme", "light"))
	s.p.loaded()
	return s
}

// configure writes what the agent does with the four groups.
func (s *sharing) configure(what string) {
	s.t.Helper()
	text := "strategy: {policy: none, sharePoolThresholdPercent: 100}\n" + what + "overrides:\n" +
		fmt.Sprintf("  - {cgroup: %q, exclusive: strict, request: 1}\n  - {cgroup: %q, exclusive: strict, "+
			"request: 8192}\n", s.own.Path, s.late.Path) +
		fmt.Sprintf("  - {cgroup: %q, class: LS, request: 0.5}\n  - {cgroup: %q, class: BE}\n", s.online.Path,
			s.offline.Path)
	next := s.prog.config + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(next, s.prog.config); err != nil {
		s.t.Fatal(err)
	}
}

// status is what the agent itself says, without the page's server.
func (s *sharing) status() (status report.Status) {
	s.t.Helper()
	data, err := exec.Command(s.prog.binary, "status", "--json", "--state-dir", s.prog.state).Output()
	if err == nil {
		err = json.Unmarshal(data, &status)
	}
	if err != nil || status.Colocation == nil || status.Reserve == nil || status.Waits == nil {
		s.t.Fatalf("%v: %s", err, data)
	}
	return status
}

// sameOwners: what stands for as long as nobody changes the configuration.
func (s *sharing) sameOwners() {
	s.t.Helper()
	status := s.status()
	c, r := status.Colocation, status.Reserve
	if len(r.Exclusive) != 1 || len(r.Refused) != 1 || r.CPUs != status.Node.CPUs-1 || len(c.Knobs) != 1 ||
		!c.InForce() {
		s.t.Fatalf("the agent does not share the machine: %+v, %+v", r, c)
	}
	shared, err := cpu.ParseSet(r.Shared)
	if err != nil {
		s.t.Fatal(err)
	}
	squares := make([]string, status.Node.CPUs)
	for n := range squares {
		squares[n] = fmt.Sprintf("own k0 %d1: exclusive: %s", n, s.own.Path)
		if slices.Contains(shared, n) {
			squares[n] = fmt.Sprintf("pool %d: shared", n)
		}
	}
	for what, c := range map[string]struct{ expression, want string }{
		"squares": {
			`[...document.querySelectorAll('.map li')].map((e) => e.className + ' ' + e.textContent + e.title.slice(e.title.indexOf(':'))).join()`, strings.Join(squares, ",")},
		"pool": {`document.querySelector('.reserve > p').textContent`,
			fmt.Sprintf("1 of %d CPUs exclusive, %d shared (%s); at least %.2f stay shared. Policy: cpuset.",
				status.Node.CPUs, r.CPUs, r.Shared, r.MinShared)},
		"owner": {`document.querySelector('.owners').textContent`,
			fmt.Sprintf("%s CPUs %s, requests 1.00 CPUs, no quota", s.own.Path, r.Exclusive[0].CPUs)},
		"refused": {`document.querySelector('.reserve .plain').textContent`,
			r.Refused[0].Cgroup + ": " + r.Refused[0].Why},
		"mechanism": {`document.querySelector('.colocation > p').textContent`,
			fmt.Sprintf("%s: %s.", c.Mechanism, c.Why)},
		"files": {`document.querySelector('.colocation > .axis').textContent`,
			"Files that hold the priority that Plimsoll requests: 1 of 1."},
		"ranks": {
			`[...document.querySelectorAll('.colocation .causes li')].map((e) => e.firstChild.textContent).join('; ')`,
			"online, 1 container; offline, 1 container; neutral, 2 containers"},
		"reserving": {`document.querySelector('.shortfall + .axis').textContent`,
			"Of the containers that are here now and have a request: 1 online, 0 offline."},
	} {
		if got := ask[string](s.p, plain(c.expression)); got != c.want {
			s.t.Errorf("%s:\n got %s\nwant %s", what, got, c.want)
		}
	}
}

// sameShortfall: what grows lies between a status before it and one after it.
func (s *sharing) sameShortfall() {
	s.t.Helper()
	before := s.figures()
	limit := `document.querySelector('.shortfall tbody').textContent`
	shown := ask[string](s.p, limit)
	for range 2 { // the second change is of a frame that was made after the status
		s.p.until(5*time.Second, limit+` !== '`+shown+`'`)
		shown = ask[string](s.p, limit)
	}
	page := map[string]time.Duration{}
	for _, row := range strings.Split(ask[string](s.p, plain(texts(`.waiting tbody tr, .shortfall tbody tr`))), ";") {
		if cells := strings.Split(row, "|"); len(cells) > 3 {
			page["waits of "+cells[0]] = s.span(cells[2])
		} else if cells[0] != "not known" { // of which the cause may be found later
			page[cells[0]] = s.span(cells[1])
		}
	}
	after := s.figures()
	for what, got := range page {
		low, high := before[what], after[what]
		if slack := high/50 + 5*time.Millisecond; got < low-slack || got > high+slack {
			s.t.Errorf("%s: the page says %v, and the agent %v before and %v after", what, got, low, high)
		}
	}
	if page["its own limit"] == 0 || page["waits of offline"] == 0 {
		s.t.Errorf("the page says %v", page)
	}
	s.t.Logf("the page says %v", page)
}

// figures are the agent's, by the page's words.
func (s *sharing) figures() map[string]time.Duration {
	words := map[report.Cause]string{report.CauseOwnLimit: "its own limit", report.CauseNeighbour: "neighbours",
		report.CauseKernel:     "kernel threads",
		report.CauseInterrupts: "interrupts", report.CauseHypervisor: "the hypervisor",
		report.CauseIdle: "an idle CPU that woke up", report.CauseOwnThreads: "its own threads"}
	list := map[string]time.Duration{}
	for _, r := range s.status().Waits.Ranks {
		list["waits of "+string(r.Rank)] = r.Time
		for _, c := range r.Causes {
			if r.Rank == "online" { // the other has no request
				list[words[c.Cause]] = c.Short
			}
		}
	}
	return list
}

// span reads a time as the page writes it.
func (s *sharing) span(text string) time.Duration {
	s.t.Helper()
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	scale := map[string]float64{"µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}[unit]
	if err != nil || scale == 0 {
		s.t.Fatalf("%q is no time", text)
	}
	return time.Duration(n * scale)
}
