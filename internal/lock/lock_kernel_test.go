package lock

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"plimsoll/internal/cgrouptest"
)

func TestKernelLock(t *testing.T) {
	p := Place{Dir: t.TempDir(), Root: cgrouptest.New(t).File(""), StateDir: t.TempDir()}
	lock, err := Take(p)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if _, err := Take(p); err == nil || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("second lock: %v", err)
	}
	var locked *TakenError
	unshared := Place{Dir: t.TempDir(), Root: p.Root, StateDir: t.TempDir()}
	if _, err := Take(unshared); !errors.As(err, &locked) || locked.Unshared != unshared.Dir {
		t.Errorf("the lock of another directory: %v", err)
	}
}
