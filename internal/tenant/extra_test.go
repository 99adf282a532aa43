package tenant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

func bound(v float64) strategy.Bound { return strategy.Bound{Set: true, CPUs: v} }

func group(name string) workload.ID { return workload.ID{Path: name} }

// TestLeft: what others in the pod, in the namespace and on the node hold is not to be had again, and what the group
// holds itself is.
func TestLeft(t *testing.T) {
	var e Extra
	e.Bound(strategy.ExtraCores{PerPod: bound(1), PerNamespace: bound(1.5), PerNode: bound(2)})
	a, b, c, d := Owner{"/a", "x"}, Owner{"/b", "x"}, Owner{"/c", "y"}, Owner{"/d", ""}
	e.Hold(group("/a/1"), a, 0.4, t0, 0)
	e.Hold(group("/b/1"), b, 0.3, t0, 0)
	e.HoldUntil(group("/c/1"), c, 0.8, t0.Add(100*ms))
	for _, x := range []struct {
		name  string
		group string
		of    Owner
		want  float64
		bound string
	}{
		{"its own", "/a/1", a, 0.9, "extraCoresPerNode"},
		{"beside another in the pod", "/a/2", a, 0.5, "extraCoresPerNode"},
		{"a pod that holds nothing", "/b/2", b, 0.5, "extraCoresPerNode"},
		{"another namespace", "/c/1", c, 1, "extraCoresPerPod"},
		{"no namespace", "/d/1", d, 0.5, "extraCoresPerNode"},
	} {
		if got, by := e.Left(group(x.group), x.of); math.Abs(got-x.want) > 1e-9 || by != x.bound {
			t.Errorf("%s: %v by %s, want %v by %s", x.name, got, by, x.want, x.bound)
		}
	}
	e.Expire(t0.Add(100 * ms))
	if got, by := e.Left(group("/a/2"), a); math.Abs(got-0.6) > 1e-9 || by != "extraCoresPerPod" {
		t.Errorf("when a refill's period is over: %v by %s", got, by)
	}
	e.Hold(group("/b/2"), b, 0.7, t0, 0)
	if got, by := e.Left(group("/a/2"), a); math.Abs(got-0.1) > 1e-9 || by != "extraCoresPerNamespace" {
		t.Errorf("beside others of the namespace: %v by %s", got, by)
	}
	e.Drop(group("/b/2"))
	e.Drop(group("/b/1"))
	e.Hold(group("/a/1"), a, 0, t0, 100*ms)
	if got, _ := e.Left(group("/a/2"), a); math.Abs(got-0.6) > 1e-9 {
		t.Errorf("in the period in which a raise was given back: %v", got)
	}
	e.Expire(t0.Add(100 * ms))
	if got, _ := e.Left(group("/a/2"), a); got != 1 || len(e.held)+len(e.sums)+len(e.brief) != 0 {
		t.Errorf("nobody holds anything: %v left, %+v", got, e)
	}
}

// TestABriefHoldingIsTheLarger: a raise does not end what a refill handed out, and the refill's end not the raise.
func TestABriefHoldingIsTheLarger(t *testing.T) {
	var e Extra
	e.Bound(strategy.ExtraCores{PerNode: bound(3)})
	o := Owner{Pod: "/a"}
	left := func() float64 { v, _ := e.Left(group("/b"), Owner{Pod: "/b"}); return v }
	e.HoldUntil(group("/a"), o, 1, t0.Add(100*ms))
	e.HoldUntil(group("/a"), o, 0.5, t0.Add(110*ms))
	e.Hold(group("/a"), o, 0.7, t0, 0)
	if e.Expire(t0.Add(100 * ms)); left() != 2 {
		t.Errorf("%v left", left())
	}
	if e.Expire(t0.Add(110 * ms)); left() != 2.3 {
		t.Errorf("%v left after the period", left())
	}
}

// TestAShorterHoldingKeepsTheEnd: a holding ends with the last of what was handed out.
func TestAShorterHoldingKeepsTheEnd(t *testing.T) {
	var e Extra
	e.Bound(strategy.ExtraCores{PerNode: bound(3)})
	o := Owner{Pod: "/a"}
	e.HoldUntil(group("/a"), o, 1, t0.Add(100*ms))
	e.HoldUntil(group("/a"), o, 1, t0.Add(50*ms))
	e.Expire(t0.Add(50 * ms))
	if left, _ := e.Left(group("/b"), Owner{Pod: "/b"}); left != 2 {
		t.Errorf("%v left, while 1 of 3 CPUs is held", left)
	}
}

// TestHoldingsAreRoundedUp: many holdings of a part of a micro-CPU count, and no sum is above a bound.
func TestHoldingsAreRoundedUp(t *testing.T) {
	var e Extra
	e.Bound(strategy.ExtraCores{PerNode: bound(2.5 / microsPerCPU)})
	o := Owner{Pod: "/a"}
	for i := range 2 {
		e.Hold(group(fmt.Sprint("/a/", i)), o, 0.5/microsPerCPU, t0, 0)
	}
	if left, _ := e.Left(group("/a/2"), o); left != 0 {
		t.Errorf("%v CPUs left of 2.5 micro-CPUs, beside two holdings of half of one", left)
	}
}

// TestNoSumDrifts: after any changes the sums are those of what is held.
func TestNoSumDrifts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var e Extra
	e.Bound(strategy.ExtraCores{PerPod: bound(1)})
	now := t0
	for range 20_000 {
		id, o := group(fmt.Sprint(r.IntN(40))), Owner{fmt.Sprint(r.IntN(5)), fmt.Sprint(r.IntN(3))}
		now = now.Add(ms)
		e.Expire(now)
		switch r.IntN(4) {
		case 0:
			e.HoldUntil(id, o, r.Float64(), now.Add(time.Duration(r.IntN(100))*ms))
		case 1:
			e.Drop(id)
		default:
			e.Hold(id, o, r.Float64()*float64(r.IntN(2)), now, 100*ms)
		}
		var want int64
		for _, h := range e.held {
			want += h.micros()
		}
		if got := e.sums[scope{perNode, node}]; got != want {
			t.Fatalf("the sum is %d, %d are held", got, want)
		}
	}
}

// TestDivide: no pod, namespace or node has more than its bound, what one does not want others have, and short is who
// weighs least.
func TestDivide(t *testing.T) {
	var e Extra
	e.Bound(strategy.ExtraCores{PerPod: bound(1), PerNamespace: bound(1.5), PerNode: bound(2)})
	claims := []Claim{
		{Owner{"/a", "x"}, 1, 3}, {Owner{"/a", "x"}, 3, 3}, // a pod of two: 1 in all
		{Owner{"/b", "x"}, 1, 0.3},
		{Owner{"/c", "y"}, 1, 5},
	}
	got := e.Divide(claims)
	sum := 0.0
	for i, g := range got {
		sum += g
		if g > claims[i].Want {
			t.Errorf("%d has %v, more than it wants", i, g)
		}
	}
	if sum > 2+1e-9 || sum < 2-1e-9 || got[0]+got[1] > 1+1e-9 || math.Abs(got[1]-3*got[0]) > 1e-9 || got[2] != 0.3 {
		t.Errorf("%v", got)
	}
	if e.Bound(strategy.ExtraCores{}); e.Divide(claims)[3] != 5 {
		t.Error("bounded without a bound")
	}
}
