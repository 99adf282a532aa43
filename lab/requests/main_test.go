package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/report"
	"plimsoll/lab/frame"
)

// TestResult: an aim is met up to 10 % and 0.1 ms, and missed beyond, or where times are withheld.
func TestResult(t *testing.T) {
	const ms = time.Millisecond
	times := func(p50, p99 time.Duration) report.Requests {
		return report.Requests{N: 1000, Response: &report.Quantiles{N: 1000, P50: &p50, P90: &p50, P99: &p99}}
	}
	x := run{Server: "web", Client: times(10*ms, 20*ms), Kernel: times(9*ms, 17*ms),
		Cost: []cost{{"sk_data_ready", warm, 251}, {"sock_send_length", warm - 1, 900}}}
	r := &result{Runs: []run{x, {Server: "h2", Limit: 0.5, Client: x.Client, Kernel: report.Requests{N: 9, Withheld: "cannot be told"}}}}
	var met []bool
	for _, f := range r.Aims() {
		met = append(met, f.Met())
	}
	want := []bool{true, false, false, false, false} // p50, p99, a warm call of 251 ns; and the two that are withheld
	if len(met) != len(want) {
		t.Fatalf("%v", r.Aims())
	}
	for i := range want {
		if met[i] != want[i] {
			t.Errorf("%+v: %v", r.Aims()[i], met[i])
		}
	}
	var page bytes.Buffer
	r.WriteText(&page)
	for _, part := range []string{"10.000 / 20.000", "9.000 / 17.000", "withheld"} {
		if !strings.Contains(page.String(), part) {
			t.Errorf("no %q in\n%s", part, &page)
		}
	}
}

func TestParse(t *testing.T) {
	if err := frame.Parse("requests", usual(), []string{"-seconds", "0"}); err == nil {
		t.Error("no time was taken")
	}
	if err := frame.Parse("requests", usual(), nil); err != nil {
		t.Error(err)
	}
}
