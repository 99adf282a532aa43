package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/fulldisk"
	"plimsoll/internal/lease"
	"plimsoll/internal/lock"
	"plimsoll/internal/logbook"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// TestRestoreSaysWhatItLeaves: what another program has written, and a group that has gone, do not count as put back.
func TestRestoreSaysWhatItLeaves(t *testing.T) {
	n := raisedPods(t, 2)
	foreign, gone := n.groups[0], n.groups[3]
	for _, path := range n.groups {
		n.write(path+"/cpu.cfs_quota_us", "50000\n") // back already: a shorter write does not shorten a plain file
	}
	n.write(foreign+"/cpu.cfs_quota_us", "170000\n")
	if err := os.RemoveAll(filepath.Join(n.cgroups, "cpu", gone)); err != nil {
		t.Fatal(err)
	}
	g, log := n.silent()
	g.restore()
	for _, want := range []string{"files=5 left_alone=1 gone=2 refused=0 left_in_journal=0",
		"cgroup=/" + foreign + " knob=quota in_force=170ms"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("it does not say %q: %s", want, log)
		}
	}
}

// TestRestoreSaysWhatIsClamped: another value than the owner's counts as put back, and is told.
func TestRestoreSaysWhatIsClamped(t *testing.T) {
	log := &logbook.Book{}
	g := &watcher{log: slog.New(slog.NewTextHandler(log, nil))}
	change := plan.Change{Cgroup: workload.ID{Path: "/a"}, Knob: plan.CPUs}
	g.tell([]plan.Result{{Change: change, Outcome: plan.Clamped, InForce: plan.Set(cpu.Set{0, 1})}}, 0)
	for _, want := range []string{"files=1 ", "another value", "cgroup=/a knob=cpus in_force=0-1"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("it does not say %q: %s", want, log)
		}
	}
}

// TestRestoreIsBrief: a successor of an installation keeps its place while the lease restores, which has none.
func TestRestoreIsBrief(t *testing.T) {
	n := raisedPods(t, 1)
	g, _ := n.silent()
	taken, err := g.take()
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Release()
	place := n.place()
	place.Installation = "a/plimsoll"
	if holder, err := lock.Holder(place); err != nil || !holder.Brief {
		t.Errorf("%+v, %v", holder, err)
	}
}

// TestRestoreSaysWhatTheJournalLost: the line that cannot be read may be of a value that is not put back. The agent
// that comes next finds a whole journal.
func TestRestoreSaysWhatTheJournalLost(t *testing.T) {
	n := raisedPods(t, 1)
	name := filepath.Join(n.state, "journal")
	text, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, bytes.Replace(text, []byte("\n"), []byte("\nno record\n"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	g, log := n.silent()
	g.restore()
	for _, want := range []string{"the journal is damaged", "journal.damaged", "put back"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("it does not say %q: %s", want, log)
		}
	}
}

// TestComplaintsAreSaidOnce: also while the lease has not run out yet.
func TestComplaintsAreSaidOnce(t *testing.T) {
	n := raisedPods(t, 1)
	if err := os.WriteFile(filepath.Join(n.state, "heartbeat"), []byte("half a l"), 0o600); err != nil {
		t.Fatal(err)
	}
	g, log := n.silent()
	g.memory = lease.Memory{After: time.Hour}
	for range 3 {
		g.look()
	}
	if said := strings.Count(log.String(), "the heartbeat cannot be read"); said != 1 {
		t.Errorf("said %d times: %s", said, log)
	}
}

// TestRestoreOfADamagedJournalOnAFullDisk: where nothing can be restored, no limit is said to be back.
func TestRestoreOfADamagedJournalOnAFullDisk(t *testing.T) {
	if fulldisk.Elsewhere(t) {
		return
	}
	n := raisedPods(t, 1)
	name := filepath.Join(n.state, "journal")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("\n"), []byte("\nno record\n"), 1)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	g, log := n.silent()
	fulldisk.Fill(t, 500) // enough for the name in the lock's file, and not for a copy of the journal
	g.restore()
	if said := log.String(); !strings.Contains(said, "damaged journal aside") || strings.Contains(said, "put back") {
		t.Errorf("it says %q", said)
	}
	isPutOff(t, g.memory)
}
