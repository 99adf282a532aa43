package trial

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/receipt"
)

// ends are the ways in which an agent ends and another one begins.
func ends() map[string]func(*World) error {
	return map[string]func(*World) error{
		"crash":    (*World).Restart,
		"stop":     func(w *World) error { w.Stop(); return w.Restart() },
		"handover": (*World).HandOver,
	}
}

// HandOver ends the agent, and starts another one that takes over.
func (w *World) HandOver() error {
	w.Agent.Successor = func() bool { return true }
	w.Stop()
	writer, left, err := w.open()
	if err == nil {
		err = w.begin(writer)
	}
	if err == nil {
		w.Agent.Adopt(left)
	}
	return err
}

// TestSpellsGoOn: the spells of an agent add to those of the one before, of the container and of the node, and the
// coins are those that would have been tossed without a restart. A spell that is on is aborted.
func TestSpellsGoOn(t *testing.T) {
	for name, end := range ends() {
		g := sampled("/lab/web", 0.3, jobs())
		w := mustNew(t, Scenario{Kernel: mainline(4, 3), Threshold: 80, Events: true, Counts: true, Groups: []Group{g}})
		w.Run(5*time.Minute, nil)
		before := receiptOf(t, w, g.Path)
		for range 4 {
			w.Run(time.Second, nil) // at four moments between two jobs, one of which may be in a spell
			if err := end(w); err != nil {
				t.Fatal(err)
			}
			w.Run(5*time.Minute, nil)
			r := receiptOf(t, w, g.Path)
			all := w.Agent.Status().Receipts
			spells := r.Treated + r.Withheld
			if n := spells - before.Treated - before.Withheld; n < 96 || n > 102 || !r.Since.Equal(before.Since) ||
				!all.Since.Equal(before.Since) ||
				all.Treated != r.Treated || all.Withheld != r.Withheld {
				t.Errorf("%s: %d more spells of about 100; before %+v, after %+v, node %+v", name, n, before, r, all)
			}
			before = r
		}
		withheld := int64(0)
		coin := fmt.Sprintf("%s %d", g.Path, w.id(g.Path).Inode)
		for n := range uint64(before.Treated + before.Withheld + before.Aborted) {
			if receipt.Withhold(3, coin, before.Since, n, 0.3) {
				withheld++
			}
		}
		if d := withheld - before.Withheld; d < 0 || d > before.Aborted || before.Aborted > 4 {
			t.Errorf("%s: %d spells withheld, %d by the coins; %d aborted", name, before.Withheld, withheld,
				before.Aborted)
		}
	}
}

// TestWithdrawnIsNotRefilledAfterRestart: an agent does not refill what the one before has withdrawn refills from, and
// says so, until a person says otherwise.
func TestWithdrawnIsNotRefilledAfterRestart(t *testing.T) {
	for name, end := range ends() {
		g := sampled("/lab/web", 0.3, jobs())
		w := mustNew(t, Scenario{Kernel: mainline(4, 2), Threshold: 80, Events: true, Counts: true, Harm: 700 * ms,
			Groups: []Group{g}})
		w.Run(30*time.Minute, nil)
		before := receiptOf(t, w, g.Path)
		if !before.Harm {
			t.Fatalf("%s: not withdrawn: %+v", name, before)
		}
		for range 2 {
			if err := end(w); err != nil {
				t.Fatal(err)
			}
			writes := len(w.Kernel.Writes())
			w.Run(10*time.Minute, nil)
			s := w.Agent.Status()
			if n := len(w.Kernel.Writes()) - writes; n != 0 || !strings.Contains(s.Containers[0].Why, "withdrawn") {
				t.Errorf("%s: %d writes after the restart; %q", name, n, s.Containers[0].Why)
			}
			if r := receiptOf(t, w, g.Path); r.Verdict != before.Verdict || !r.Harm || r.Saved != before.Saved ||
				s.Receipts.Withdrawn != 1 {
				t.Errorf("%s: %+v, before the restart %+v", name, r, before)
			}
			if !strings.Contains(strings.Join(s.Problems, "\n"), "/lab/web: refills are withdrawn") {
				t.Errorf("%s: problems %q", name, s.Problems)
			}
		}
	}
}
