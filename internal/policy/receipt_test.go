package policy

import (
	"testing"
	"time"

	"plimsoll/internal/receipt"
	"plimsoll/internal/strategy"
)

// TestNoSpellUnderARaise: of the spell before, which would have to be lowered first.
func TestNoSpellUnderARaise(t *testing.T) {
	in := Input{Now: t0, Node: Node{Known: true, CPUs: 8, Capacity: 8, ThresholdPercent: 100}}
	for quota, begins := range map[time.Duration]bool{50 * ms: true, 150 * ms: false} {
		u := raisedTo("/a", 50*ms, quota)
		u.m.experiment = receipt.New(0.5, 1, "/a", t0)
		u.withhold(in)
		if got := u.m.inSpell(); got != begins {
			t.Errorf("at a quota of %v a spell begins: %v", quota, got)
		}
	}
}

// TestEachExperimentHasItsOwnCoins: experiments of one group that begin one after another do not all begin with the
// same arm: a tenant begins another one by an annotation.
func TestEachExperimentHasItsOwnCoins(t *testing.T) {
	r, arms := newAnswered(strategy.Auto), map[bool]int{}
	for n := range 40 {
		now := t0.Add(time.Duration(n+1) * time.Second)
		r.group.Strategy.Receipts = 0.5
		r.group.Strategy.CFSQuotaBurstPercent = int64(200 + n%2)
		r.state.Decide(r.input(now))
		e := r.state.Receipt(r.group.ID)
		if !e.Since.Equal(now) {
			t.Fatalf("it began at %v, and it is %v", e.Since, now)
		}
		e.Begin(now, receipt.Meter{})
		arms[e.Withheld()]++
	}
	if arms[true] < 8 || arms[false] < 8 {
		t.Errorf("first spells by whether they are withheld: %v", arms)
	}
}

// TestExperimentBeginsAnew: when what is handed out changes, and not when the node's threshold does.
func TestExperimentBeginsAnew(t *testing.T) {
	r := newAnswered(strategy.Auto)
	now := t0.Add(time.Second)
	for _, c := range []struct {
		name   string
		change func()
		anew   bool
	}{
		{"receipts", func() { r.group.Strategy.Receipts = 0.1 }, true},
		{"nothing", func() {}, false},
		{"the threshold", func() { r.group.Strategy.SharePoolThresholdPercent = 70 }, false},
		{"the cap", func() { r.group.Strategy.CFSQuotaBurstPercent = 200 }, true},
		{"the bounds", func() { r.extra.PerNode = strategy.Bound{Set: true, CPUs: 2} }, true},
	} {
		before := r.state.Receipt(r.group.ID)
		c.change()
		now = now.Add(time.Second)
		r.state.Decide(r.input(now))
		if after := r.state.Receipt(r.group.ID); after == nil || (after != before) != c.anew {
			t.Errorf("%s: anew %v, want %v", c.name, after != before, c.anew)
		}
	}
}
