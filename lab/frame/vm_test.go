package frame

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestInstall: a program runs with nothing but what was copied.
func TestInstall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), root)
	for _, name := range []string{"cat", "ls"} { // some libraries are those of both
		if err := install(t.Context(), name, dir); err != nil {
			t.Fatal(err)
		}
	}
	loaders, err := filepath.Glob(filepath.Join(dir, "lib", "ld-linux-*"))
	if err != nil || len(loaders) != 1 {
		t.Fatalf("%v, %v", loaders, err)
	}
	out, err := exec.Command(loaders[0], "--library-path", filepath.Join(dir, "lib"), filepath.Join(dir, "bin", "ls"), "--version").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if err := install(t.Context(), "no-such-program", dir); err == nil {
		t.Error("a program that is not there was copied")
	}
}
