package cgrouptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/cgroup"
)

// Binary is the program under test: that of PLIMSOLL_BINARY in a VM, where there is no Go, else one that is built here.
func Binary(t testing.TB) string {
	t.Helper()
	if given := os.Getenv("PLIMSOLL_BINARY"); given != "" {
		return given
	}
	built := filepath.Join(t.TempDir(), "plimsoll")
	if out, err := exec.Command("go", "build", "-o", built, "plimsoll/cmd/plimsoll").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return built
}

// NothingLeft fails the test when a group at the top of the hierarchy has a name with one of these prefixes.
func NothingLeft(t testing.TB, prefixes ...string) {
	t.Helper()
	tree, err := cgroup.Detect(cgroup.NewDir(Root()))
	if err != nil {
		t.Fatal(err)
	}
	left, err := tree.Children("/")
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range left {
		for _, prefix := range prefixes {
			if strings.HasPrefix(group, "/"+prefix) {
				t.Errorf("left behind: %s", group)
			}
		}
	}
}
