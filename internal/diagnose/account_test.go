package diagnose

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/report"
)

const ms = time.Millisecond

// step is what happened in one slice of 100 ms.
type step struct {
	running, waiting time.Duration
	ended            Parts // of waits that ended in it
	lost             Lost
}

// run sums up steps.
func run(reserved float64, steps ...step) *Account {
	a := &Account{Reserved: reserved}
	r := Reading{At: time.Hour}
	a.Add(r)
	for _, s := range steps {
		r.At += 100 * ms
		r.Running += s.running
		r.Waiting += s.waiting
		r.Parts = r.Parts.plus(s.ended)
		r.Lost.IRQ += s.lost.IRQ
		r.Lost.Steal += s.lost.Steal
		a.Add(r)
	}
	return a
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name     string
		reserved float64
		steps    []step
		want     Split
	}{
		{"alone on a CPU", 1, []step{{running: 100 * ms}},
			Split{Elapsed: 100 * ms, Wanted: 100 * ms, Received: 100 * ms}},
		{"nothing reserved is nothing short", 0,
			[]step{{running: 50 * ms, waiting: 50 * ms, ended: Parts{Behind: 50 * ms}}},
			Split{Elapsed: 100 * ms, Wanted: 100 * ms, Received: 50 * ms, Waits: Parts{Behind: 50 * ms}}},
		{"half a CPU behind a neighbour", 1,
			[]step{{running: 50 * ms, waiting: 50 * ms, ended: Parts{Behind: 50 * ms}}},
			Split{Elapsed: 100 * ms, Wanted: 100 * ms, Received: 50 * ms, Waits: Parts{Behind: 50 * ms},
				Shortfall: Parts{Behind: 50 * ms}}},
		{"what is above the reservation is not short", 0.6,
			[]step{{running: 50 * ms, waiting: 50 * ms, ended: Parts{Behind: 50 * ms}}},
			Split{Elapsed: 100 * ms, Wanted: 100 * ms, Received: 50 * ms, Waits: Parts{Behind: 50 * ms},
				Shortfall: Parts{Behind: 10 * ms}}},
		{"two slices do not make good for each other", 0.5, []step{
			{running: 100 * ms},
			{waiting: 100 * ms, ended: Parts{Own: 100 * ms}},
		}, Split{Elapsed: 200 * ms, Wanted: 200 * ms, Received: 100 * ms, Waits: Parts{Own: 100 * ms},
			Shortfall: Parts{Own: 50 * ms}}},
		{"in proportion to those outside", 2,
			[]step{{running: 100 * ms, waiting: 200 * ms, ended: Parts{Own: 30 * ms, Behind: 90 * ms, Self: 80 * ms}}},
			Split{Elapsed: 100 * ms, Wanted: 300 * ms, Received: 100 * ms,
				Waits:     Parts{Own: 30 * ms, Behind: 90 * ms, Self: 80 * ms},
				Shortfall: Parts{Own: 25 * ms, Behind: 75 * ms}}},
		{"its own threads have the rest", 2,
			[]step{{running: 100 * ms, waiting: 200 * ms, ended: Parts{Behind: 20 * ms, Self: 180 * ms}}},
			Split{Elapsed: 100 * ms, Wanted: 300 * ms, Received: 100 * ms,
				Waits:     Parts{Behind: 20 * ms, Self: 180 * ms},
				Shortfall: Parts{Behind: 20 * ms, Self: 80 * ms}}},
		{"interrupts take what had been given", 1, []step{{running: 100 * ms, lost: Lost{IRQ: 5 * ms, Steal: 20 * ms}}},
			Split{Elapsed: 100 * ms, Wanted: 100 * ms, Received: 75 * ms, Waits: Parts{Lost: Lost{5 * ms, 20 * ms}},
				Shortfall: Parts{Lost: Lost{5 * ms, 20 * ms}}}},
		{"a wait over three slices finds its cause at its end", 1, []step{
			{waiting: 100 * ms}, {waiting: 100 * ms}, {running: 50 * ms, waiting: 50 * ms,
				ended: Parts{Above: 250 * ms}},
		}, Split{Elapsed: 300 * ms, Wanted: 300 * ms, Received: 50 * ms, Waits: Parts{Above: 250 * ms},
			Shortfall: Parts{Above: 250 * ms}}},
		{"a wait that lasts has no name", 1, []step{{running: 40 * ms, waiting: 60 * ms}},
			Split{Elapsed: 100 * ms, Wanted: 100 * ms, Received: 40 * ms, Waits: Parts{Unnamed: 60 * ms},
				Shortfall: Parts{Unnamed: 60 * ms}}},
		{"waits from before are scaled out", 1,
			[]step{{running: 90 * ms, waiting: 10 * ms, ended: Parts{Behind: 30 * ms, Own: 10 * ms}}},
			Split{Elapsed: 100 * ms, Wanted: 100 * ms, Received: 90 * ms,
				Waits:     Parts{Behind: 7500 * time.Microsecond, Own: 2500 * time.Microsecond},
				Shortfall: Parts{Behind: 7500 * time.Microsecond, Own: 2500 * time.Microsecond}}},
	} {
		if diff := cmp.Diff(c.want, run(c.reserved, c.steps...).Split()); diff != "" {
			t.Errorf("%s (-want +got): %s", c.name, diff)
		}
	}
}

// A reading in the middle of a switch is ahead of the next one: a counter does not go back for it.
func TestSumOnlyGrows(t *testing.T) {
	a := &Account{}
	a.Add(Reading{At: time.Hour})
	a.Add(Reading{At: time.Hour + 100*ms, Running: 20 * ms, Waiting: 10 * ms, Beside: 15 * ms})
	before := a.Sum()
	a.Add(Reading{At: time.Hour + 200*ms, Running: 19 * ms, Waiting: 9 * ms, Beside: 14 * ms})
	if diff := cmp.Diff(before, a.Sum()); diff != "" {
		t.Error(diff)
	}
}

// What interrupts and the hypervisor take of a turn is known when it ends: nothing that a container received is taken
// back for it.
func TestReceivedOnlyGrows(t *testing.T) {
	a := &Account{}
	a.Add(Reading{At: time.Hour})
	for i, c := range []struct{ running, irq, steal, want time.Duration }{
		{100 * ms, 0, 0, 100 * ms}, {101 * ms, 10 * ms, 0, 100 * ms}, {105 * ms, 10 * ms, 9 * ms, 100 * ms},
		{130 * ms, 10 * ms, 9 * ms, 111 * ms},
	} {
		a.Add(Reading{At: time.Hour + time.Duration(i+1)*100*ms, Running: c.running, Lost: Lost{c.irq, c.steal}})
		if got := a.Sum().Received; got != c.want {
			t.Errorf("reading %d: received %v, want %v", i, got, c.want)
		}
	}
}

// Whatever the readings, received and waits are what was wanted, and the shortfall is no more than the waits.
func TestSplitAddsUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	span := func() time.Duration { return time.Duration(random.Int64N(int64(200 * ms))) }
	for range 500 {
		var steps []step
		var open time.Duration
		for range 1 + random.IntN(20) {
			s := step{running: span(), waiting: span()}
			s.lost = Lost{s.running / 10, s.running / 20}
			open += s.waiting
			for _, part := range []*time.Duration{&s.ended.Own, &s.ended.Above, &s.ended.Behind, &s.ended.Idle,
				&s.ended.Self, &s.ended.Unnamed} {
				*part = time.Duration(random.Int64N(int64(open)/6 + 1))
				open -= *part
			}
			steps = append(steps, s)
		}
		a := run(3*random.Float64(), steps...)
		s := a.Split()
		if got := s.Received + s.Waits.sum(); got != s.Wanted {
			t.Fatalf("%v wanted, %v in parts: %+v", s.Wanted, got, s)
		}
		if short := s.Shortfall.sum(); short < 0 || short > s.Wanted-s.Received+time.Microsecond {
			t.Fatalf("short of %v, waited %v: %+v", short, s.Wanted-s.Received, s)
		}
		for _, part := range []time.Duration{s.Waits.Own, s.Waits.Above, s.Waits.Behind, s.Waits.Idle, s.Waits.Self,
			s.Waits.IRQ, s.Waits.Steal} {
			if part < 0 {
				t.Fatalf("a part is negative: %+v", s)
			}
		}
	}
}

// What is shown as a counter leaves out the wait that lasts, and what was before the account.
func TestSum(t *testing.T) {
	got := run(1, step{running: 40 * ms, waiting: 60 * ms, ended: Parts{Behind: 20 * ms},
		lost: Lost{IRQ: 5 * ms}}).Sum()
	want := report.Waited{Wanted: 100 * ms, Received: 35 * ms, Waits: []report.Wait{
		{Cause: report.CauseNeighbour, Time: 20 * ms, Short: 20 * ms}, {Cause: report.CauseInterrupts, Time: 5 * ms,
			Short: 5 * ms}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
}
