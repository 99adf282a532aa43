package frame

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
	out, err := exec.Command(loaders[0], "--library-path", filepath.Join(dir, "lib"), filepath.Join(dir, "bin", "ls"),
		"--version").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if err := install(t.Context(), "no-such-program", dir); err == nil {
		t.Error("a program that is not there was copied")
	}
}

// TestInstallByPath: a file that no one may execute is copied by its path, to where the guest takes it from.
func TestInstallByPath(t *testing.T) {
	dir := t.TempDir()
	library := filepath.Join(dir, "library.so")
	cat, err := os.ReadFile("/bin/cat")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(library, cat, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := install(t.Context(), library, filepath.Join(dir, root)); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, root, "paths", library)); err != nil || len(got) != len(cat) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestInstructionLength: the length of an instruction is given to the emulator as a power of two; 0 is real time.
func TestInstructionLength(t *testing.T) {
	for length, want := range map[time.Duration]string{0: "", 1: "ICOUNT=0", 2: "ICOUNT=1", 4: "ICOUNT=2"} {
		got := slices.DeleteFunc(VM{Instruction: length}.environment(),
			func(v string) bool { return !strings.HasPrefix(v, "ICOUNT") })
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %q, want %q", length, got, want)
		}
	}
}
