package agent

import (
	"strings"
	"testing"
	"time"
)

// Another program that writes a limit is told of once, with the group and what it did.
func TestForeignWriterIsReported(t *testing.T) {
	w := newWorld(t)
	w.hog("/lab/a")
	var told []string
	w.agent.Foreign = func(group, what string) { told = append(told, group+": "+what) }
	w.run(2 * time.Second)
	w.wantRaised("/lab/a", 50*ms)
	w.limit("/lab/a", 70*ms)
	w.run(20 * time.Second)
	w.want("/lab/a", 70*ms, w.kernel.Bandwidth("/lab/a").Burst)
	if len(told) != 1 || !strings.HasPrefix(told[0], "/lab/a: /lab/a: another program set the quota to 70ms") {
		t.Errorf("told: %q", told)
	}
}
