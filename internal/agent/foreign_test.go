package agent

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/journal"
)

// Another program that writes a limit is reported once, with the group and what it did.
func TestForeignWriterIsReported(t *testing.T) {
	w := newWorld(t)
	w.hog("/lab/a")
	var reported []string
	w.agent.Foreign = func(group, what string) { reported = append(reported, group+": "+what) }
	w.run(2 * time.Second)
	w.wantRaised("/lab/a", 50*ms)
	w.limit("/lab/a", 70*ms)
	w.run(20 * time.Second)
	w.want("/lab/a", 70*ms, w.kernel.Bandwidth("/lab/a").Burst)
	if len(reported) != 1 || !strings.HasPrefix(reported[0], "/lab/a: /lab/a: another program set the quota to 70ms") {
		t.Errorf("reported: %q", reported)
	}
}

// TestDryRunReportsForeignWriter: a dry run says that another program has overwritten a raise,
// and has no journal to note it in.
func TestDryRunReportsForeignWriter(t *testing.T) {
	w := newWorld(t)
	w.hog("/lab/a")
	w.run(2 * time.Second)
	w.wantRaised("/lab/a", 50*ms)
	o := w.agent.DryRunOptions()
	o.Tree, o.Host, o.Log = w.tree, w.host, w.agent.Log
	dry := New(o)
	left, err := journal.OpenDisk(w.disk, "boot", w.kernel.Now)
	if err != nil {
		t.Fatal(err)
	}
	dry.Adopt(left.Entries())
	dry.Plan(w.kernel.Now())
	w.limit("/lab/a", 70*ms)
	now := w.kernel.Now()
	for range 20 {
		now = now.Add(time.Second)
		dry.Plan(now)
	}
	if got := strings.Join(dry.Status().Problems, "\n"); !strings.Contains(got,
		"another program set the quota to 70ms") {
		t.Errorf("problems: %q", got)
	}
}
