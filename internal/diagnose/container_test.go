package diagnose

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/report"
)

// waited is a second in which a container wanted a CPU and had these waits.
func waited(p Parts) Split {
	return Split{Elapsed: time.Second, Wanted: time.Second, Received: time.Second - p.sum(), Waits: p, Shortfall: p}
}

func plain() Container {
	return Container{Name: "web", Cgroup: "/web", Reserved: 1, Limit: math.Inf(1), PodLimit: math.Inf(1)}
}

func TestDescribe(t *testing.T) {
	got := Describe(plain(), waited(Parts{Behind: 400 * ms, Own: 100 * ms}), []Behind{
		{Name: "small", Cgroup: "/s", Time: 100 * ms, Forced: 100 * ms},
		{Name: "kernel threads", Kernel: true, Time: 200 * ms},
		{Name: "large", Cgroup: "/l", Time: 500 * ms, Phantom: 250 * ms, Waking: 5 * ms},
		{Name: "never", Cgroup: "/n"},
	})
	one, half, short := 1.0, 0.5, 500*ms
	want := report.Diagnosed{Name: "web", Cgroup: "/web", Reserved: &one, Wanted: time.Second, Received: 500 * ms,
		Used: &half, Short: &short,
		Waits: []report.Wait{
			{Cause: report.CauseNeighbour, Time: 300 * ms, Short: 300 * ms},
			{Cause: report.CauseOwnLimit, Time: 100 * ms, Short: 100 * ms},
			{Cause: report.CauseKernel, Time: 100 * ms, Short: 100 * ms},
		},
		Neighbours: []report.Neighbour{
			{Name: "large", Cgroup: "/l", Time: 250 * ms, Phantom: 125 * ms, Waking: 2500 * time.Microsecond},
			{Name: "small", Cgroup: "/s", Time: 50 * ms, Forced: 50 * ms},
		}}
	got.Verdict, got.Next = "", ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
}

// A group that was made again is one neighbour.
func TestDescribeOneNameOnce(t *testing.T) {
	d := Describe(plain(), waited(Parts{Behind: 300 * ms}), []Behind{
		{Name: "job", Cgroup: "/job", Time: 100 * ms, Forced: 10 * ms},
		{Name: "other", Cgroup: "/other", Time: 120 * ms},
		{Name: "job", Cgroup: "/job", Time: 80 * ms, Waking: 10 * ms},
	})
	want := []report.Neighbour{{Name: "job", Cgroup: "/job", Time: 180 * ms, Forced: 10 * ms, Waking: 10 * ms},
		{Name: "other", Cgroup: "/other", Time: 120 * ms}}
	if diff := cmp.Diff(want, d.Neighbours); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
}

func TestVerdict(t *testing.T) {
	limited := func(own, above float64) Container {
		c := plain()
		c.Limit, c.PodLimit = own, above
		return c
	}
	idle := Split{Elapsed: time.Second, Wanted: 5 * ms, Received: ms}
	for _, c := range []struct {
		name          string
		container     Container
		split         Split
		behind        []Behind
		verdict, next string // parts of them
	}{
		{"hardly anything", plain(), idle, nil, "hardly any CPU", ""},
		{"content", plain(), waited(Parts{Behind: 20 * ms}), nil, "98 %", ""},
		{"at its limit", limited(0.5, math.Inf(1)), waited(Parts{Own: 500 * ms}), nil,
			"by its own limit for 50 % of the time that it wanted. The limit is 0.50 CPUs and it used nearly all",
			"raise its limit"},
		{"peaks", limited(2, math.Inf(1)), waited(Parts{Own: 200 * ms}), nil, "peaks run into it", "let it burst"},
		{"the pod", limited(2, 0.6), waited(Parts{Above: 400 * ms}), nil,
			"throttled by a limit above it (its pod's) for 40 %", "raise the pod's limit"},
		{"neighbour", plain(), waited(Parts{Behind: 500 * ms}),
			[]Behind{{Name: "noisy", Cgroup: "/noisy", Time: 400 * ms},
				{Name: "other", Cgroup: "/other", Time: 100 * ms}},
			"behind others in a run queue for 50 % of the time that it wanted, 80 % of that behind noisy",
			"lower the priority of noisy"},
		{"no group", plain(), waited(Parts{Behind: 500 * ms}),
			[]Behind{{Name: "processes outside of any group", Cgroup: "/", Time: 400 * ms}}, "",
			"into one of a lower priority"},
		{"phantom", plain(), waited(Parts{Behind: 500 * ms}),
			[]Behind{{Name: "noisy", Time: 400 * ms, Phantom: 300 * ms}},
			"In 75 % of it a CPU that it may use was idle", "bound"},
		{"forced", plain(), waited(Parts{Behind: 500 * ms}),
			[]Behind{{Name: "noisy", Time: 400 * ms, Forced: 300 * ms}},
			"In 75 % of it the others received all that they reserved", "give it exclusive CPUs"},
		{"its own threads", plain(), waited(Parts{Self: 500 * ms}), nil, "waited for each other", "fewer threads"},
		{"kernel", plain(), waited(Parts{Behind: 500 * ms}),
			[]Behind{{Name: "kernel threads", Kernel: true, Time: 300 * ms}}, "kernel threads had the CPU", "top -H"},
		{"interrupts", plain(), waited(Parts{Lost: Lost{IRQ: 200 * ms}}), nil, "Interrupts took 20 %", "smp_affinity"},
		{"hypervisor", plain(), waited(Parts{Lost: Lost{Steal: 200 * ms}}), nil, "The hypervisor took 20 %", "larger"},
		{"waking", plain(), waited(Parts{Idle: 200 * ms}), nil, "an idle CPU was waking up", "sleep states"},
		{"unknown cause", plain(), waited(Parts{Unnamed: 200 * ms}), nil, "not known", "--for"},
		{"the shortfall goes before the wait", plain(),
			Split{Elapsed: time.Second, Wanted: 2 * time.Second, Received: 500 * ms,
				Waits: Parts{Self: time.Second, Behind: 500 * ms}, Shortfall: Parts{Behind: 500 * ms}},
			[]Behind{{Name: "noisy", Time: 500 * ms}}, "behind noisy", "noisy"},
		{"its promise was kept", plain(), Split{Elapsed: time.Second, Wanted: 2 * time.Second, Received: time.Second,
			Waits: Parts{Behind: time.Second}},
			[]Behind{{Name: "noisy", Time: time.Second}},
			"It received what it reserved (1.00 CPUs), and it wanted more. It waited behind others in a run " +
				"queue for 50 %", "raise its request"},
		{"a large promise was not kept", Container{Name: "web", Cgroup: "/web", Reserved: 16, Limit: math.Inf(1),
			PodLimit: math.Inf(1)}, Split{Elapsed: time.Second, Wanted: time.Second, Received: 860 * ms,
			Waits: Parts{Behind: 140 * ms}, Shortfall: Parts{Behind: 140 * ms}},
			[]Behind{{Name: "noisy", Time: 140 * ms}}, "It waited behind others in a run queue for 14 %", "noisy"},
		{"its promise was kept, and its limit too", limited(1.5, math.Inf(1)),
			Split{Elapsed: time.Second, Wanted: 3 * time.Second, Received: 1500 * ms,
				Waits: Parts{Own: 1500 * ms}}, nil, "it wanted more. It was throttled by its own limit for 50 %",
			"raise its limit"},
		{"beside a sibling", plain(), Split{Elapsed: time.Second, Wanted: time.Second, Received: time.Second,
			Beside: 900 * ms}, nil,
			"not short of CPU. For 90 % of the time that it ran, the core's other hardware thread", "coreExpeller"},
		{"short, and beside a sibling", plain(), Split{Elapsed: time.Second, Wanted: time.Second, Received: 500 * ms,
			Waits:     Parts{Self: 500 * ms},
			Shortfall: Parts{Self: 500 * ms}, Beside: 500 * ms}, nil,
			"of the time that they wanted: on average 1.0 wanted to run, on 0.50 CPUs. For 100 %", "fewer threads"},
	} {
		d := Describe(c.container, c.split, c.behind)
		kept := strings.Contains(d.Verdict, "received what it reserved")
		if kept != strings.HasPrefix(c.name, "its promise was kept") {
			t.Errorf("%s: %q", c.name, d.Verdict)
		}
		if !strings.Contains(d.Verdict, c.verdict) || !strings.Contains(d.Next, c.next) || c.next == "" &&
			d.Next != "" {
			t.Errorf("%s: %q; next: %q", c.name, d.Verdict, d.Next)
		}
	}
}

func TestRank(t *testing.T) {
	short := func(name string, s, waited time.Duration) report.Diagnosed {
		d := report.Diagnosed{Name: name, Wanted: waited}
		if s > 0 {
			d.Short = &s
		}
		return d
	}
	list := []report.Diagnosed{short("d", 0, ms), short("c", 0, 5*ms), short("b", ms, ms), short("a", 9*ms, ms)}
	Rank(list)
	var names []string
	for _, d := range list {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, names); diff != "" {
		t.Error(diff)
	}
}

// TestNamed: the longest first, kernel threads among them, one group by its path; no more of them than is wanted, and
// no more time than was waited behind neighbours.
func TestNamed(t *testing.T) {
	behind := []Behind{{Name: "a", Cgroup: "/a", Time: 2 * ms}, {Name: "kernel threads", Kernel: true, Time: 3 * ms},
		{Name: "b", Cgroup: "/b", Time: 4 * ms},
		{Name: "a", Cgroup: "/a", Time: 7 * ms}, {Name: "c", Cgroup: "/c"}, {Name: "d", Cgroup: "/d", Time: ms}}
	waited := func(d time.Duration) report.Waited {
		return report.Waited{Waits: []report.Wait{{Cause: report.CauseOwnLimit, Time: time.Hour},
			{Cause: report.CauseNeighbour, Time: d}}}
	}
	for _, c := range []struct {
		waited time.Duration
		most   int
		want   []report.Neighbour
	}{
		{20 * ms, 3, []report.Neighbour{{Name: "a", Cgroup: "/a", Time: 9 * ms},
			{Name: "b", Cgroup: "/b", Time: 4 * ms}, {Name: "kernel threads", Time: 3 * ms}}},
		{17 * ms / 2, 1, []report.Neighbour{{Name: "a", Cgroup: "/a", Time: 9 * ms / 2}}},
		{0, 3, []report.Neighbour{}},
	} {
		if diff := cmp.Diff(c.want, Named(behind, waited(c.waited), c.most)); diff != "" {
			t.Errorf("%v waited behind neighbours (-want +got):\n%s", c.waited, diff)
		}
	}
	if behind[1].Kernel != true || Named(nil, waited(time.Second), 3) != nil {
		t.Error("what it is given is changed, or nobody is named")
	}
}
