package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/lab/frame"
)

const ms = time.Millisecond

func TestResult(t *testing.T) {
	r := &result{Limit: 0.5, Work: 200, Rounds: 3, Machine: frame.Machine{Kernel: "6.18", Cgroup: "v1"}}
	for _, more := range []time.Duration{0, 30 * ms, 5 * ms} {
		r.Runs = append(r.Runs, run{experiment.Unlimited, 200*ms + more, 200 * ms},
			run{"none", 450*ms + more, 200 * ms}, run{"auto", 241*ms + more, 200 * ms})
	}
	var page bytes.Buffer
	r.WriteText(&page)
	for _, want := range []string{"none  455 ms              x2.22    200 ms", "1.2       <= 1.2  met"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in\n%s", want, &page)
		}
	}
	r.Runs[0].Took -= 100 * ms
	r.Runs[3].Took, r.Runs[6].Took = 200*ms, 200*ms
	if f := r.Aims()[0]; f.Met() {
		t.Errorf("%+v", f)
	}
	if f := (&result{}).Aims()[0]; f.Met() {
		t.Errorf("nothing was measured: %+v", f)
	}
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{{"-limit", "1"}, {"-rounds", "0"}, {"-work", "1ms"}} {
		if err := frame.Parse("job", usual(), args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
	if err := frame.Parse("job", usual(), nil); err != nil {
		t.Error(err)
	}
}
