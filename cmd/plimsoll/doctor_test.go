package main

import (
	"strings"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/doctor"
	"plimsoll/internal/policy"
)

// TestDoctorWhereNothingWorks: the exit code says so to a script, and a remedy to a person.
func TestDoctorWhereNothingWorks(t *testing.T) {
	n := testNode{state: t.TempDir(), cgroups: t.TempDir()}
	stdout, stderr, err := n.run("doctor")
	if exitCode(err) != exitFailed || !strings.Contains(stdout, "FEATURE") ||
		!strings.Contains(stderr, "no policy can work at "+n.cgroups+": no cpu controller") ||
		!strings.Contains(stderr, "hint: is --cgroup-root where") {
		t.Errorf("%v, %q, %.100q", err, stderr, stdout)
	}
	works := doctor.Report{Features: cgroup.Features{{Name: cgroup.FeatureController, State: cgroup.Yes}}}
	if err := useless(works); err != nil {
		t.Errorf("with a controller: %v", err)
	}
	for _, name := range []string{cgroup.FeatureWritable, cgroup.FeatureBandwidth, cgroup.FeatureEnforced,
		doctor.FeatureTasks} {
		e := doctor.Examine(version, "6.18", "/x", append(works.Features,
			cgroup.Feature{Name: name, State: cgroup.No, Detail: "it is not"}), policy.Machine{})
		if err := useless(e); err == nil || err.Error() != "no policy can work at /x: it is not" {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestDoctorsCommandsFindTheAgent: a command in its advice works when it is copied.
func TestDoctorsCommandsFindTheAgent(t *testing.T) {
	n := newNode(t)
	stdout, _, _ := n.run("doctor")
	if text := strings.Join(strings.Fields(stdout), " "); !strings.Contains(text,
		"`plimsoll advise --live "+n.flags()+"`") {
		t.Error(stdout)
	}
}
