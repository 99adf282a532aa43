package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/doctor"
)

// TestDoctorWithoutController: where nothing can work, the exit code says so to a script, and a remedy to a person.
func TestDoctorWithoutController(t *testing.T) {
	n := node{state: t.TempDir(), cgroups: t.TempDir()}
	stdout, stderr, err := n.run("doctor")
	if exitCode(err) != exitFailed || !strings.Contains(stdout, "FEATURE") || !strings.Contains(stderr, "no policy can work at "+n.cgroups+": no cpu controller") ||
		!strings.Contains(stderr, "hint: is --cgroup-root where") {
		t.Errorf("%v, %q, %.100q", err, stderr, stdout)
	}
	works := doctor.Report{Features: cgroup.Features{{Name: cgroup.FeatureController, State: cgroup.Yes}}}
	if err := useless(works); err != nil {
		t.Errorf("with a controller: %v", err)
	}
}

// golden compares with a file. UPDATE_GOLDEN=1 rewrites it.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: %s", file, diff)
	}
}
