package agent

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRetriesRestores: a group that is no longer managed is restored also when the kernel refuses that at first. It is
// tried again the more seldom the longer the kernel does so.
func TestRetriesRestores(t *testing.T) {
	w, tries := raised(t), 0
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if op == "write" && strings.HasPrefix(name, "cpu/lab/a/") {
			tries++
			return syscall.EINVAL
		}
		return nil
	}
	w.place.pods = nil
	w.run(2 * time.Second)
	w.wantRaised("/lab/a", 50*ms)
	w.wantProblem("/lab/a: no longer managed")
	if w.run(28 * time.Second); tries < 4 || tries > 8 {
		t.Errorf("tried %d times in 30 s", tries)
	}
	w.kernel.Fault = nil
	w.run(32 * time.Second)
	w.want("/lab/a", 50*ms, 0)
	w.wantProblem("")
}
