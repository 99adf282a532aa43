package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/golden"
	"plimsoll/lab/frame"
)

func TestBeside(t *testing.T) {
	r := &experiment.Result{Modes: []experiment.ModeResult{
		{Name: "none", P99: 261.1, Mean: 87.8, ThrottledRatio: 0.287},
		{Name: "cpuBurstOnly", P99: 125.2, Mean: 55.3, ThrottledRatio: 0.035},
		{Name: "auto", P99: 65.6, Mean: 51.5, ThrottledRatio: 0.006},
	}}
	var b bytes.Buffer
	for _, name := range []string{"koordinator", "kernel"} {
		writeBeside(&b, studies()[name], r)
	}
	golden.File(t, "beside.txt", b.String())
	b.Reset()
	r.Modes = r.Modes[:1]
	if writeBeside(&b, studies()["kernel"], r); !strings.Contains(b.String(), "not compared") {
		t.Errorf("without cpuBurstOnly:\n%s", b.String())
	}
}

func parse(args []string) (*settings, error) {
	s := usual()
	return s, frame.Parse("apache", s, args)
}

func TestParse(t *testing.T) {
	f, err := parse(nil)
	if err != nil || f.Utilization != 0.45 || len(f.Modes) != 5 || f.PerMode != 30*time.Second || f.Rounds != 3 {
		t.Errorf("defaults: %+v, %v", f, err)
	}
	f, err = parse([]string{"-against", "kernel", "-seconds", "5"})
	if err != nil || f.Utilization != 0.625 || !slices.Equal(f.Modes, []experiment.Mode{none, burst}) || f.Rounds != 1 {
		t.Errorf("kernel: %+v, %v", f, err)
	}
	f, err = parse([]string{"-against", "kernel", "-utilization", "50", "-modes", "auto,none"})
	if err != nil || f.Utilization != 0.5 || !slices.Equal(f.Modes, []experiment.Mode{auto, none}) {
		t.Errorf("given: %+v, %v", f, err)
	}
	for _, args := range [][]string{{"-against", "x"}, {"-modes", "x"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}
