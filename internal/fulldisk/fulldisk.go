// Package fulldisk gives tests a disk that takes nothing more. RLIMIT_FSIZE stands for it: the kernel takes a part of
// the data, and refuses the rest. The limit is that of the process.
package fulldisk

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// elsewhere is in the environment of a process that runs one test.
const elsewhere = "PLIMSOLL_TEST_OF_A_FULL_DISK"

// Elsewhere runs the test in a process of its own, and says so: go test has each process of tests keep a log of the
// files that it opens, which would not fit either.
func Elsewhere(t *testing.T) bool {
	t.Helper()
	if os.Getenv(elsewhere) != "" {
		return false
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), elsewhere+"=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return true
}

// Fill lets no file grow beyond a size, until the function that it returns is called or the test ends.
func Fill(t *testing.T, size int64) (free func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(size), Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	free = func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(free)
	return free
}
