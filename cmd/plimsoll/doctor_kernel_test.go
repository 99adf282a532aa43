package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/doctor"
	"plimsoll/internal/strategy"
)

// The command on the running kernel.
func TestDoctorKernel(t *testing.T) {
	cgrouptest.New(t) // skips, or fails, where there is no cgroup to probe
	run := func(args ...string) string {
		root := newRoot()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(append(args, "--cgroup-root", cgrouptest.Root()))
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := run("doctor")
	for _, want := range []string{cgrouptest.Release(t), "cpu-controller", "What the policies come to", "auto"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	var e doctor.Report
	if err := json.Unmarshal([]byte(run("doctor", "--json")), &e); err != nil {
		t.Fatal(err)
	}
	if e.Schema != "plimsoll.doctor/v1" || len(e.Policies) != 4 || !e.Features.Has(cgroup.FeatureWritable) {
		t.Errorf("%+v", e)
	}
	none := noScheduler(t)
	for _, v := range e.Priority {
		if v.Mechanism != strategy.MechanismSchedExt {
			continue
		}
		switch release := cgrouptest.Release(t); {
		case none != "" && (v.Usable || !strings.Contains(v.Why, none)),
			none == withoutSchedExt && !strings.Contains(v.Why, release):
			t.Errorf("%s, of which %q should be said: %+v", release, none, v)
		case none == "" && !v.Usable && cgrouptest.AtLeast(release, "6.17"):
			t.Errorf("%s: %+v", release, v)
		}
	}
}
