package peers

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
)

// TestTable: what was not measured, did not happen and was nought are told apart.
func TestTable(t *testing.T) {
	s := Settings{Limit: 50 * ms, Rate: 6, Load: 40 * time.Second, Pods: 50, Small: 10 * ms, Steps: 3,
		Spin: 4 * time.Second, Resized: 40 * ms, Patience: 15 * time.Second}
	limit := Files{Pod: 40 * ms, Container: 40 * ms}
	r := Result{Settings: s, Ways: []Way{
		{Name: "no limit", Service: &Service{P99: 60 * ms, Requests: 240}},
		{Name: "peer", Service: &Service{P99: 120500 * time.Microsecond, Requests: 240, Periods: 200, Throttled: 30,
			Stood: 1500 * ms, CPUs: 0.25},
			Steps: []Step{{Effect{true, true, 900 * ms, ""}, 2 * time.Second},
				{Effect{true, true, 1700 * ms, ""}, 3 * time.Second},
				{Effect{Throttled: true}, 4 * time.Second}},
			One: &Cost{0.041, 90 << 20}, Many: &Cost{0.0512, 101 << 20},
			Resize: &Resize{Raised: Files{Pod: 130 * ms, Container: 120 * ms}, Error: "Error: x",
				Failed: 9 * time.Second,
				After:  Files{Pod: cpu.Unlimited, Container: 50 * ms, PodBurst: 40 * ms}},
			Kill:    &Kill{At: Files{Pod: 120 * ms, Container: 120 * ms}, Later: limit},
			Stopped: &Left{Groups: 90, Quotas: 10, Bursts: 0}},
		{Name: "none", Steps: []Step{{}}, Resize: &Resize{Raised: limit, Done: true, Took: 300 * ms, After: limit}},
	}}
	var page bytes.Buffer
	r.WriteText(&page)
	got := map[string][]string{}
	for line := range strings.Lines(page.String()) {
		if cells := strings.Split(strings.Trim(line, "| \n"), "|"); len(cells) == 4 {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			got[cells[0]] = cells[1:]
		}
	}
	for name, want := range map[string]string{
		"p99":                                          "60 ms/120 ms/not measured",
		"throttled periods":                            "0.0 %/15.0 %/not measured",
		"time stood still":                             "0.00 s/1.50 s/not measured",
		"first throttle to first write":                "-/900 ms, longest 1.7 s; 1 without/nothing throttled",
		"stood still, of 4s at a full CPU":             "-/3 s/0 us",
		"agent's CPU, 1 pod under load, of one CPU":    "-/4.10 %/-",
		"its memory (RSS), 50 pods, idle":              "-/101 MiB/-",
		"resize to 0.4 CPUs: raised at that moment to": "-/1.2/0.4",
		"the kubelet's answer":                         "-/not done; error for 9 s/done in 300 ms",
		"what stands afterwards, without load": "-/container 0.5, pod unlimited; burst 0 us, 40 " +
			"ms/the limit",
		"kill -9: what stands at once":                            "-/container 1.2, pod 1.2/-",
		"15s later, without load":                                 "-/the limit/-",
		"SIGTERM: groups whose quota, burst is not the kubelet's": "-/10, 0 of 90/-",
	} {
		if cells := strings.Join(got[name], "/"); cells != want {
			t.Errorf("%s: %q, want %q", name, cells, want)
		}
	}
	if t.Failed() {
		t.Log(page.String())
	}
}
