package policy

import (
	"testing"
	"time"
)

// TestWriteBudget: what writes take is a fiftieth of the time, and half of that after a burst of them.
func TestWriteBudget(t *testing.T) {
	var p WriteAccount
	now := time.Unix(1000, 0)
	writes := 0
	for range 10_000 { // a second in which writes of 100 us are wanted all the time
		if p.Open(now).Left > 0 {
			p.Spend(1, 100*time.Microsecond)
			writes++
		}
		now = now.Add(100 * time.Microsecond)
	}
	if want := int((budgetFull + time.Second/budgetShare) / (100 * time.Microsecond)); writes < want-10 || writes > want+10 {
		t.Errorf("%d writes of 100 us in a second, want %d", writes, want)
	}
	if got := p.Open(now.Add(time.Minute)); got.Left != got.Full || got.Full != 200 {
		t.Errorf("%+v after a minute's rest", got)
	}
}

// TestWriteBudgetAfterAPause: one write that took a second, as when the machine stood still, is soon forgotten.
func TestWriteBudgetAfterAPause(t *testing.T) {
	var p WriteAccount
	now := time.Unix(1000, 0)
	p.Open(now)
	p.Spend(1, time.Second)
	for range 100 {
		now = now.Add(2 * time.Second)
		if got := p.Open(now); got.Left < 1 {
			t.Fatalf("nothing may be written any more: %+v, %+v", got, p)
		}
		p.Spend(1, 50*time.Microsecond)
	}
	if got := p.Open(now); got.Full < 300 {
		t.Errorf("%+v after 100 writes of 50 us", got)
	}
}

// TestWriteBudgetInDebt: what starts take beyond what there is, others go without.
func TestWriteBudgetInDebt(t *testing.T) {
	var p WriteAccount
	now := time.Unix(1000, 0)
	p.Open(now)
	p.Spend(600, 30*time.Millisecond)
	if got := p.Open(now.Add(400 * ms)); got.Left > 0 {
		t.Errorf("%+v with a debt of 10 ms after 400 ms, of which 8 ms are for writes", got)
	}
	p.Spend(6000, 300*time.Millisecond)
	if got := p.Open(now.Add(2 * time.Second)); got.Left < 1 {
		t.Errorf("%+v more than a second later", got)
	}
}
