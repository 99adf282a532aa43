package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
	"plimsoll/internal/golden"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

const ms = time.Millisecond

var t0 = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func at(d time.Duration) *time.Time {
	t := t0.Add(d)
	return &t
}

// A status is written piece by piece, and comes out as the encoder writes it whole.
func TestStatusIsWrittenAsOnePiece(t *testing.T) {
	s := sample()
	s.Problems = append(s.Problems, "a <text> with\n  \"containers\": [] in it")
	for n := range len(s.Containers) + 1 {
		part := s
		part.Containers = s.Containers[:n]
		var want, got bytes.Buffer
		if err := encoder(&want, "").Encode(part); err != nil {
			t.Fatal(err)
		}
		if err := WriteJSON(&got, part); err != nil || got.String() != want.String() {
			t.Errorf("%d containers: %v, got\n%s\nwant\n%s", n, err, got.String(), want.String())
		}
	}
}

// sample is a node with a pod, a raised container, a paused service, an unlimited folder and a refused write. Its
// numbers agree: a refill is a write of the burst, a throttle that was refilled is none at a period's end,
// and the lengths bound the sum.
func sample() Status {
	auto := strategy.Default()
	auto.Policy = strategy.Auto
	now := 2*time.Hour + 3*time.Minute
	harmful := sampleReceipt("harms the container", true)
	return Status{
		Schema: StatusSchema, Version: "0.1.0", Started: t0, Now: t0.Add(now), Mode: Active, Kernel: "6.18.44",
		Cgroup: "v2", ConfigOK: true, LastTurn: t0.Add(now - 50*ms),
		Node:       Node{State: "idle", CPUs: 8, Capacity: 4, Used: 0.41, Threshold: 2, Granted: 1},
		Colocation: sampleColocation(),
		Waits: &Waits{Ranks: []RankWaits{{strategy.Online, 100, 30 * ms,
			[]Length{{2 * time.Microsecond, 60}, {1024 * time.Microsecond, 39}, {4096 * time.Microsecond, 1}}, 2 * ms,
			[]Wait{{CauseNeighbour, time.Second, 20 * ms}}, 1},
			{strategy.Offline, 4, 3 * time.Second, []Length{{1048576 * time.Microsecond, 4}}, 2 * ms, nil, 0}},
			Contention: &Contention{Contended: 50 * ms, Runnable: 8100 * ms, Ratio: new(0.02)}},
		Requests: &RequestTimes{Untraced: 3},
		Kubernetes: &Kubernetes{Node: "n1", Reachable: true, Ready: true, Pods: 2, Matched: 1,
			ConfigMaps: []ConfigMap{{"kube-system/ack-slo-config", true}}, RejectedNow: 1, RejectedTotal: 3,
			Rejected: []Rejected{{Object: "Pod default/web",
				Key: "koordinator.sh/cpuBurst", Field: "policy",
				Fault: `"on" is not one of none, cpuBurstOnly, cfsQuotaBurstOnly, auto`, Hint: "did you mean none?"}}},
		Cuts: []Cut{{"Pod default/web", "koordinator.sh/cpuBurst", "cfsQuotaBurstPercent", "500", "300",
			"annotationMaxima"},
			{"default/\x1b[31mweb", "CPUs above the limit", "", "1.00", "0.40", "extraCoresPerPod"}},
		CutsNow: 2,
		Reserve: sampleReserve(),
		NRI: &NRI{Socket: "/var/run/nri/nri.sock", Connected: true, Runtime: "containerd v2.2.9", Asked: 3,
			Prepared: 2, Late: 1},
		Receipts: &Receipts{Seed: 7, Withdrawn: 1, Receipt: sampleReceipt("saves time", false)},
		Record: &Flight{Dir: "/var/lib/plimsoll", Files: 42, Bytes: 3 << 20, Written: 4_000_000, Dropped: 1200,
			Lost: 30, Damaged: 1, Fault: "no space left on device"},
		Containers: []Container{
			{
				Cgroup: "/kubepods/pod1/" + strings.Repeat("ab", 32), Name: "default/web/nginx", Pod: "default/web",
				Runtime: "containerd",
				Level:   "container", Strategy: auto, Limit: 50 * ms, Period: 100 * ms, Since: t0,
				Quota: Knob{Original: 50 * ms, Requested: 150 * ms, InForce: 150 * ms, Changed: true,
					Since: at(now - 3*time.Second)},
				Burst: Knob{Requested: 500 * ms, InForce: 50 * ms, Changed: true, Clamped: true,
					Since: at(time.Minute)},
				Why:     "raised: throttled in 4 of 10 periods",
				Receipt: &harmful,
				Requests: &Requests{RequestWindow{time.Minute, 1200, 3, false, Quantiles{4 * ms, 9 * ms, 105 * ms},
					Quantiles{3 * ms, 8 * ms, 99 * ms}, Quantiles{0, 0, ms}, Quantiles{4 * ms, 8 * ms, 15 * ms},
					9 * time.Second, 3 * time.Second, true}, RequestTotals{5000, 3, time.Minute, 20 * time.Second,
					[]Length{{131072, 0}, {16777216, 4000}, {134217728, 1000}}, true}},
				Totals: Totals{Usage: 1800 * time.Second, Periods: 45000, Throttled: 500,
					ThrottledTime: 9 * time.Second,
					ThrottledWall: 4500 * ms, Bursts: 40, BurstTime: 1234567 * time.Microsecond,
					AboveLimit: 20 * time.Second,
					Raised:     62 * time.Second, Raises: 7, Refills: 90, WallSaved: 6 * time.Second,
					Events: &Throttles{Begun: 596, Ended: 595, Wall: 4500 * ms, Foreseen: 12, Last: 30 * ms,
						Peak: 148 * ms, Second: 420 * ms,
						Lengths: []Length{{256 * time.Microsecond, 70}, {512 * time.Microsecond, 12},
							{2048 * time.Microsecond, 2}, {16384 * time.Microsecond, 511}}},
					Waited: &Waited{Wanted: 9 * time.Second, Received: 7980 * ms, Beside: time.Second,
						Waits: []Wait{{CauseNeighbour, 20 * ms, 10 * ms}, {CauseOwnLimit, time.Second, 0}}}},
			},
			{
				Cgroup: "/kubepods/pod1", Name: "default/web", Runtime: "containerd", Level: "pod", Strategy: auto,
				Limit:  100 * ms,
				Period: 100 * ms, Since: t0.Add(time.Hour), Quota: Knob{Original: 100 * ms, Requested: 200 * ms,
					InForce: 200 * ms, Changed: true},
				Burst: Knob{Requested: 100 * ms, Problem: "refused: invalid argument"},
			},
			{
				Cgroup: "/system.slice/nginx.service", Name: "nginx.service", Runtime: "systemd", Level: "container",
				Strategy: auto,
				Limit:    20 * ms, Period: 100 * ms, Since: t0, Paused: at(3 * time.Hour),
				Quota: Knob{Original: 20 * ms, Requested: 20 * ms, InForce: 20 * ms}, Why: "paused by an operator",
				Requests: &Requests{RequestWindow{Window: time.Minute, Answered: 90, Doubtful: 10, Withheld: true},
					RequestTotals{Answered: 90, Doubtful: 10, Lengths: []Length{}}},
			},
			{
				Cgroup: "/lab/\x1b[31mred", Name: "/lab/\x1b[31mred", Runtime: "cgroup", Level: "container",
				Strategy: auto,
				Limit:    cpu.Unlimited, Period: 100 * ms, Since: t0,
				Quota: Knob{Original: cpu.Unlimited, Requested: cpu.Unlimited, InForce: cpu.Unlimited},
			},
		},
		Writes: Writes{
			Results: map[plan.Knob]map[plan.Outcome]int64{plan.Quota: {plan.Applied: 25, plan.Trampled: 1},
				plan.Burst: {plan.Applied: 91, plan.Clamped: 1, plan.Refused: 1}},
			Decisions: map[string]int64{"raise": 7, "give-back": 6, "pod": 13, "burst": 3, "refill": 90},
		},
		Events: Events{Subscribed: true, Lost: 2, Refills: 90, DelayP50: 210 * time.Microsecond, DelayP99: 2 * ms,
			Priority: "fifo",
			Missing:  []MissingPart{{Part: "forecast", Lost: "throttles are not foreseen", Why: "refused"}}},
		Self: Self{CPU: 36 * time.Second, RSS: 20 << 20, Turns: 73800, Looks: 150000, TurnP50: 56 * time.Microsecond,
			TurnP99: 1234 * time.Microsecond, Rescans: 12, EventsLost: 1, Goroutines: 31},
	}
}

func recorded(t *testing.T, name string, write func(b *bytes.Buffer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	golden.File(t, name, b.String())
}

// TestSeveral: one of something is not several.
func TestSeveral(t *testing.T) {
	one := Flight{Dir: "/var/lib/plimsoll", Files: 1, Bytes: 1 << 20, Dropped: 1}
	if got, want := one.line(), "1.0 MiB in 1 file in /var/lib/plimsoll; 1 period dropped"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGoldens(t *testing.T) {
	held := sample()
	held.HeldReason, held.HeldSince = "incident \x1b[31m7", at(2*time.Hour)
	held.Mode = Held
	const refused = "/kubepods/pod1: refused burst to 100ms: invalid argument"
	held.Problems = []string{fmt.Sprintf(ProblemConfig, `plimsoll.yaml:3: policy: "on" is not one of none, auto`),
		refused, "another agent holds the lock (hint: stop it)"}
	held.Containers[1].Burst.Problem = refused // appears once
	offline := Status{Version: "0.1.0", Mode: Offline, Kernel: "6.18.44", Cgroup: "v1"}
	id := func(path string) workload.ID { return workload.ID{Path: path, Inode: 7} }
	changes := []plan.Change{
		{Cgroup: id("/a"), Knob: plan.Quota, From: "50ms", To: "150ms", Why: "throttled"},
		{Cgroup: id("/a/b"), Knob: plan.Burst, From: "0s", To: "500ms", Why: "1000 % of the limit"},
	}
	results := []plan.Result{
		{Change: changes[0], Outcome: plan.Applied, InForce: "150ms"},
		{Change: changes[1], Outcome: plan.Clamped, InForce: "50ms", Err: "invalid argument"},
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"status.txt":         func(b *bytes.Buffer) error { return sample().Text(b) },
		"status-held.txt":    func(b *bytes.Buffer) error { return held.Text(b) },
		"status-offline.txt": func(b *bytes.Buffer) error { return offline.Text(b) },
		"status.json":        func(b *bytes.Buffer) error { return WriteJSON(b, sample()) },
		"status-empty.json":  func(b *bytes.Buffer) error { return WriteJSON(b, offline) },
		"report.txt":         func(b *bytes.Buffer) error { return Of(sample()).Text(b) },
		"report-empty.txt":   func(b *bytes.Buffer) error { return Of(offline).Text(b) },
		"receipts.txt":       func(b *bytes.Buffer) error { return ReceiptsOf(sample()).Text(b) },
		"receipts-off.txt":   func(b *bytes.Buffer) error { return ReceiptsOf(offline).Text(b) },
		"report.json":        func(b *bytes.Buffer) error { return WriteJSON(b, Of(sample())) },
		"plan.txt":           func(b *bytes.Buffer) error { return NewPlan(changes).Text(b) },
		"plan-named.txt": func(b *bytes.Buffer) error {
			p := NewPlan(changes, "No control group matches /c.")
			p.Names = map[string]string{"/a/b": "default/web/nginx"}
			return p.Text(b)
		},
		"plan-empty.txt":     func(b *bytes.Buffer) error { return NewPlan(nil).Text(b) },
		"plan-empty.json":    func(b *bytes.Buffer) error { return WriteJSON(b, NewPlan(nil)) },
		"plan.json":          func(b *bytes.Buffer) error { return WriteJSON(b, NewPlan(changes)) },
		"results.txt":        func(b *bytes.Buffer) error { return NewResults(results).Text(b) },
		"results-empty.json": func(b *bytes.Buffer) error { return WriteJSON(b, NewResults(nil)) },
	} {
		t.Run(name, func(t *testing.T) { recorded(t, name, write) })
	}
}

func TestStatusJSONRoundTrip(t *testing.T) {
	want := sample()
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Status
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteErrorsAreReturned(t *testing.T) {
	for name, err := range map[string]error{
		"status": sample().Text(brokenPipe{}), "report": Of(sample()).Text(brokenPipe{}),
		"json": WriteJSON(brokenPipe{}, 1),
		"plan": NewPlan(nil).Text(brokenPipe{}), "results": NewResults(nil).Text(brokenPipe{}),
	} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: got %v, want the writer's error", name, err)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                            "0s",
		50 * ms:                      "50ms",
		1234567:                      "1.23ms",
		12345678:                     "12.3ms",
		1234567 * time.Microsecond:   "1.23s",
		999 * time.Nanosecond:        "999ns",
		-1500 * time.Millisecond:     "-1.5s",
		2*time.Hour + 34567890123:    "2h0m35s",
		59*time.Second + 987654321:   "1m0s",
		100*time.Second + 499999*1e3: "1m40s",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%d) = %s, want %s", d, got, want)
		}
	}
}

// TestEventsLine: delays are only of throttles that had begun.
func TestEventsLine(t *testing.T) {
	for want, e := range map[string]Events{
		"events from eBPF": {Subscribed: true},
		"events from eBPF; 3 refills, all ahead of the throttle": {Subscribed: true, Refills: 3},
		"events from eBPF; answered at priority nice -20":        {Subscribed: true, Priority: "nice -20"},
		"events from eBPF; answered at priority plain (no right)": {Subscribed: true, Priority: "plain",
			PriorityWhy: "no right"},
		"events from eBPF; throttles are not foreseen, since the part forecast is missing: refused": {Subscribed: true,
			Missing: []MissingPart{{Part: "forecast", Lost: "throttles are not foreseen", Why: "refused"}}},
		"polled for: no rights": {Why: "no rights"},
	} {
		if got := e.line(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// oneLine is a text with its lines joined.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestWordsOfTheStatus: a release is no pause, and a node that is not measured yet says what that means.
func TestWordsOfTheStatus(t *testing.T) {
	until := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := Status{Mode: Active, Node: Node{State: "unknown"},
		Containers: []Container{{Cgroup: "/a", Name: "a", Paused: &until, Released: true},
			{Cgroup: "/b", Name: "b", Paused: &until}}}
	var out bytes.Buffer
	if err := s.Text(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"node unknown (not measured yet: nothing is raised): ",
		"released until 2026-11-21 12:00:00: its limit is left to another writer", "paused until 2026-11-21 " +
			"12:00:00: it is kept at its limit"} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("%q is not once in %s", want, out.String())
		}
	}
}

func sampleReceipt(verdict string, harm bool) Receipt {
	return Receipt{Since: t0, Treated: 1980, Withheld: 20, Aborted: 1, TreatedLost: 0.0002, WithheldLost: 0.08,
		Verdict: verdict, Harm: harm,
		Saved: Caused{0.08, 0.05, 0.11, true}, SavedPerDay: Caused{160, 100, 220, true},
		Neighbours: Caused{Mean: -0.0001},
		Requests:   Caused{0.24, 0.1, 0.38, true}, RequestsPerDay: Caused{480, 200, 760, true}}
}
