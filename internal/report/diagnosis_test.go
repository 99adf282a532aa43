package report

import (
	"bytes"
	"testing"
	"time"

	"plimsoll/internal/golden"
)

func diagnosis() Diagnosis {
	const ms = time.Millisecond
	one, half, used, short, zero, two := 1.0, 0.5, 0.5, time.Second, time.Duration(0), 2
	return Diagnosis{Schema: DiagnosisSchema, Elapsed: 2 * time.Second, CPUs: 2,
		Containers: []Diagnosed{
			{Name: "default/web/ng\x1binx", Cgroup: "/kubepods/web", Reserved: &one, Limit: &half, PodLimit: &one,
				Wanted: 2 * time.Second, Received: time.Second,
				Used: &used, Short: &short, Beside: 300 * ms,
				Waits: []Wait{{CauseNeighbour, 500 * ms, 600 * ms}, {CauseOwnLimit, 300 * ms, 300 * ms},
					{CauseKernel, 100 * ms, 100 * ms},
					{CausePodLimit, 40 * ms, 0}, {CauseIdle, 20 * ms, 0}, {CauseInterrupts, 10 * ms, 0},
					{CauseHypervisor, 10 * ms, 0},
					{CauseOwnThreads, 10 * ms, 0}, {CauseUnnamed, 10 * ms, 0}},
				Neighbours: []Neighbour{{"a", "/a", 200 * ms, 100 * ms, 20 * ms, 2 * ms},
					{"b", "/b", 100 * ms, 0, 0, 0}, {"c", "/c", 100 * ms, 0, 0, 0},
					{"d", "/d", 50 * ms, 0, 0, 0}, {"e", "/e", 30 * ms, 0, 0, 0}, {"f", "/f", 20 * ms, 0, 0, 0}},
				Requests: &Requests{RequestWindow: RequestWindow{Window: 2 * time.Second}},
				Verdict:  "It waited.", Next: "wait less",
				Parallelism: &Parallelism{Limit: 0.5, Burst: 4, BurstFrom: "the cap", Threads: &two, Unusable: true,
					Runtimes: []RuntimeProcess{{PID: 7, Name: "api", Runtime: "go", Version: "go1.26.8", Threads: 9,
						Parallelism: &two, From: "its limit", Set: "GOMAXPROCS=4"}},
					Verdict: "api runs Go code on 2 threads.", Next: "set GOMAXPROCS=4"}},
			{Name: "/lab/idle", Cgroup: "/lab/idle", Wanted: 19 * ms, Waits: []Wait{}, Neighbours: []Neighbour{},
				Verdict: "It is not here."},
			{Name: "/lab/batch", Cgroup: "/lab/batch", Wanted: 100 * ms, Received: 100 * ms, Short: &zero,
				Waits: []Wait{}, Neighbours: []Neighbour{}, Verdict: "It is well.",
				Parallelism: &Parallelism{Limit: 0.5, Burst: 1.5, Threads: &two, Runtimes: []RuntimeProcess{}}},
		},
		Overhead: Overhead{Switches: 12345, PerSwitch: 210, Programs: 9 * ms, Plimsoll: 11 * ms, Share: 0.005},
		Notes:    []string{"something was lost"},
	}
}

func TestDiagnosisGolden(t *testing.T) {
	for name, d := range map[string]Diagnosis{"two": diagnosis(), "none": {Elapsed: time.Second, CPUs: 2},
		"idle": {Elapsed: time.Second, CPUs: 2, Containers: []Diagnosed{{Name: "/lab/idle", Verdict: "It is idle."}}}} {
		var got bytes.Buffer
		if err := d.Text(&got); err != nil {
			t.Fatal(err)
		}
		golden.File(t, "diagnosis/"+name+".txt", got.String())
	}
}

// The bar has the same length whatever the parts.
func TestBarIsFull(t *testing.T) {
	for received := range 61 {
		d := Diagnosed{Wanted: 100, Received: time.Duration(received), Waits: []Wait{
			{Cause: CauseOwnThreads, Time: time.Duration(100-received) / 3},
			{Cause: CauseOwnLimit, Time: 100 - time.Duration(received) - time.Duration(100-received)/3},
		}}
		if got := len([]rune(d.bar())); got != barWidth {
			t.Errorf("received %d: %d characters: %s", received, got, d.bar())
		}
	}
}
