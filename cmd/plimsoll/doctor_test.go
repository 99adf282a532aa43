package main

import (
	"strings"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/doctor"
)

// TestDoctorWithoutController: where nothing can work, the exit code says so to a script, and a remedy to a person.
func TestDoctorWithoutController(t *testing.T) {
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
