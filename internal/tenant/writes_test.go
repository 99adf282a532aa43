package tenant

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

const (
	ms   = time.Millisecond
	cost = 100 * time.Microsecond
)

var t0 = time.Unix(1000, 0)

// asker is a tenant that wants to write at every n-th instant.
type asker struct {
	tenant string
	every  int
	need   Need
	got    int
}

// ask has the askers ask for d, at instants 100 us apart, in the order in which they are listed. It returns what the
// writes took.
func ask(w *Writes, d time.Duration, askers ...*asker) (took time.Duration) {
	for i := range int(d / cost) {
		now := t0.Add(time.Duration(i) * cost)
		for _, a := range askers {
			if i%a.every == 0 && w.Afford(now, a.tenant, a.need) {
				w.Took(1, cost)
				a.got++
				took += cost
			}
		}
	}
	return took
}

// within says whether a number is near another one.
func within(t *testing.T, what string, got, want, slack int) {
	t.Helper()
	if got < want-slack || got > want+slack {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

// TestOneTenantHasAll: a tenant alone has a fiftieth of the time for writes, and a burst of them.
func TestOneTenantHasAll(t *testing.T) {
	var w Writes
	one := &asker{tenant: "a", every: 1}
	took := ask(&w, 10*time.Second, one)
	within(t, "writes of 100 us in 10 s", one.got, int((budgetFull+10*time.Second/budgetPart)/cost), 20)
	within(t, "their time, in 100 us", int(took/cost), one.got, 0)
}

// TestSharesAreEqual: whoever asks more often, first and with more groups, has no more than its part when the other
// wants it too.
func TestSharesAreEqual(t *testing.T) {
	var w Writes
	attacker, victim := &asker{tenant: "attacker", every: 1}, &asker{tenant: "victim", every: 1}
	ask(&w, 20*time.Second, attacker, attacker, attacker, victim)
	within(t, "the victim's writes in 20 s", victim.got, int((budgetFull/4+10*time.Second/budgetPart)/cost), 60)
	if all := int((budgetFull + 20*time.Second/budgetPart) / cost); attacker.got > all-victim.got+60 {
		t.Errorf("%d and %d writes, %d may be made", attacker.got, victim.got, all)
	}
}

// TestShareIsGuaranteed: what a tenant asks for within its share it gets, however much others ask for, and what it
// does not use others have.
func TestShareIsGuaranteed(t *testing.T) {
	for others := range 6 {
		var w Writes
		victim := &asker{tenant: "victim", every: int(time.Second/budgetPart/cost) * (others + 1)} // its share exactly
		victim.every = int(budgetPart) * (others + 1)
		all := []*asker{}
		for i := range others {
			all = append(all, &asker{tenant: fmt.Sprint("attacker ", i), every: 1, need: Need(i % 2)})
		}
		took := ask(&w, 20*time.Second, append(all, victim)...)
		if want := int(20*time.Second/cost) / victim.every; victim.got < want {
			t.Errorf("beside %d: %d writes, of %d within its share", others, victim.got, want)
		}
		if most := 20*time.Second/budgetPart + 3*budgetFull/2 + time.Duration(others+1)*cost; took > most {
			t.Errorf("beside %d: writes took %v, want %v at most", others, took, most)
		}
	}
}

// TestABurstWithinTheShare: who has not asked for long may write at once what its share holds, though others ask all
// the time.
func TestABurstWithinTheShare(t *testing.T) {
	var w Writes
	attacker := &asker{tenant: "attacker", every: 1}
	ask(&w, 10*time.Second, attacker)
	within(t, "the attacker alone", attacker.got, int((budgetFull+10*time.Second/budgetPart)/cost), 20)
	burst, now := 0, t0.Add(10*time.Second)
	for w.Afford(now, "victim", Ordinary) {
		w.Took(1, cost)
		burst++
	}
	within(t, "a burst beside one", burst, int(budgetFull/4/cost), 2)
}

// TestForgottenTenants: who asks for nothing any more does not make the others' shares smaller, and comes back with a
// full one.
func TestForgottenTenants(t *testing.T) {
	var w Writes
	for i := range 500 {
		w.Afford(t0, fmt.Sprint(i), Ordinary)
	}
	w.Took(500, 500*cost)
	w.Afford(t0.Add(2*time.Minute), "a", Ordinary)
	if n := len(w.ordinary.shares); n != 1 {
		t.Errorf("%d tenants are remembered", n)
	}
	if got, want := w.ordinary.most(), budgetFull/2; got != want {
		t.Errorf("a share holds %v, want %v", got, want)
	}
}

// TestStartsHaveTheirOwn: starts take nothing from other writes, and a tenant's starts nothing from another tenant's.
func TestStartsHaveTheirOwn(t *testing.T) {
	var w Writes
	loop, other, victim := &asker{tenant: "loop", every: 1, need: Start}, &asker{tenant: "other", every: 20,
		need: Start}, &asker{tenant: "victim", every: 100}
	ask(&w, 10*time.Second, loop, loop, other, victim)
	if victim.got != 1000 || other.got != 5000 {
		t.Errorf("%d writes of 1000, %d writes for starts of 5000", victim.got, other.got)
	}
	within(t, "starts in a loop", loop.got, 5000, 300)
}

// TestLimitTooLowLeavesHalf of its tenant's share to others of the tenant.
func TestLimitTooLowLeavesHalf(t *testing.T) {
	var w Writes
	low, good := 0, 0
	for w.Afford(t0, "a", TooLow) {
		w.Took(1, cost)
		low++
	}
	for w.Afford(t0, "a", Ordinary) {
		w.Took(1, cost)
		good++
	}
	within(t, "too low", low, int(budgetFull/2/cost), 2)
	within(t, "after that", good, int(budgetFull/2/cost), 2)
}

// TestCostIsMeasured: a write that took a second, as when the machine stood still, is soon forgotten, and what was
// not written costs nothing.
func TestCostIsMeasured(t *testing.T) {
	var w Writes
	now := t0
	w.Afford(now, "a", Ordinary)
	w.Took(1, time.Second)
	for range 100 {
		now = now.Add(2 * time.Second)
		if !w.Afford(now, "a", Ordinary) {
			t.Fatalf("nothing may be written any more: %+v", w.ordinary)
		}
		w.Took(1, 50*time.Microsecond)
	}
	if w.cost > 60*time.Microsecond {
		t.Errorf("%v after 100 writes of 50 us", w.cost)
	}
	before := w.ordinary.shares["a"].left
	w.Afford(now, "a", Ordinary)
	if w.Took(0, 5*time.Microsecond); w.ordinary.shares["a"].left != before {
		t.Errorf("%v, and %v after a write that was not made", before, w.ordinary.shares["a"].left)
	}
}

// TestAffordsIsAsTheSharesSay: where no share is looked at, the answer is the same, for three tenants of which one asks
// all the time.
func TestAffordsIsAsTheSharesSay(t *testing.T) {
	var w Writes
	rnd := rand.New(rand.NewPCG(1, 1))
	answers := map[bool]int{}
	for i := range 20_000 {
		now, tenant, need := t0.Add(time.Duration(i)*cost/5), "a", []Need{Ordinary, TooLow, Start, Start}[rnd.IntN(4)]
		if rnd.IntN(4) == 0 {
			tenant = []string{"b", "c"}[rnd.IntN(2)]
		}
		others := rnd.IntN(4)
		said := w.Affords(now, tenant, need, others)
		if shares := w.payer(now, tenant, need, others) != nil; said != shares {
			t.Fatalf("%d: %s, need %d, after %d others: %v, but %v: %+v", i, tenant, need, others, said, shares,
				w.ordinary)
		}
		answers[said]++
		if w.Afford(now, tenant, need) {
			w.Took(1, cost)
		}
	}
	if answers[true] < 100 || answers[false] < 100 {
		t.Errorf("answers %v: this tests little", answers)
	}
}
