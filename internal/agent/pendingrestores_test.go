package agent

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRetriesRestores: a group that is no longer managed is restored also when the kernel refuses that at first.
func TestRetriesRestores(t *testing.T) {
	w := raised(t)
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if op == "write" && strings.HasPrefix(name, "cpu/lab/a/") {
			return syscall.EINVAL
		}
		return nil
	}
	w.place.pods = nil
	w.run(2 * time.Second)
	w.wantRaised("/lab/a", 50*ms)
	w.wantProblem("/lab/a: no longer managed")
	w.kernel.Fault = nil
	w.run(2 * time.Second)
	w.want("/lab/a", 50*ms, 0)
	w.wantProblem("")
}
