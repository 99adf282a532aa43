package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"plimsoll/internal/loadline"
	"plimsoll/internal/loadline/published"
)

// aims are the figures of the issue: nanoseconds, milliseconds and ratios.
const (
	aimLindley  = 3.0
	aimExact    = 30 * time.Millisecond
	aimRun      = 100 * time.Millisecond
	aimNumpy    = 100.0
	aimNumba    = 5.0
	aimCompiled = 1.3
)

// speed times the model beside the same in Python, in turns, and takes the best of each.
func (l *lab) speed() {
	if l.python == nil {
		l.fail(errors.New("no Python; hint: -python \"$(bash bench/setup.sh)\""))
		return
	}
	t := l.best()
	l.print("nanoseconds per cgroup and period; exponential demand, m=20, u=70 %%, burst 100 %%; one core; best of %d turns\n\n", l.rounds)
	l.print("%-58s %8s %8s\n", "form", "ns", "P(%)")
	row := func(name string, f form) { l.print("%-58s %8.2f %8.3f\n", name, f.NS, 100*f.Missed) }
	row("numpy, a loop over periods", t.python["numpy"])
	row("numba, the published steps", t.python["numba"])
	row("numba, the Lindley form (PCG64, ziggurat)", t.python["lindley"])
	row("Go, the published steps (shared out)", t.full)
	row("Go, the Lindley form", t.lindley)
	l.print("\n%-58s %10s %10s\n", "figure", "reached", "aim")
	missed := 0
	judge := func(name, reached, aim string, ok bool) {
		word := ""
		if !ok {
			word = "  MISSED"
			missed++
		}
		l.print("%-58s %10s %10s%s\n", name, reached, aim, word)
	}
	faster := func(name, than string, aim float64) {
		ratio := t.python[than].NS / t.lindley.NS
		judge("Go's Lindley form faster than "+name, fmt.Sprintf("%.1fx", ratio), fmt.Sprintf(">= %gx", aim), ratio >= aim)
	}
	judge("Go's Lindley form, ns", fmt.Sprintf("%.2f", t.lindley.NS), fmt.Sprintf("<= %g", aimLindley), t.lindley.NS <= aimLindley)
	faster("numpy's loop", "numpy", aimNumpy)
	faster("numba's published steps", "numba", aimNumba)
	faster("numba's Lindley form", "lindley", aimCompiled)
	judge("exact J, m=20", t.exact.Round(10*time.Microsecond).String(), "<= "+aimExact.String(), t.exact <= aimExact)
	judge("1 M periods, m=10, with intervals, all cores", t.run.Round(100*time.Microsecond).String(), "< "+aimRun.String(), t.run < aimRun)
	judge("the same from a recording of 1000, with bootstrap", t.recorded.Round(100*time.Microsecond).String(), "< "+aimRun.String(), t.recorded < aimRun)
	l.print("\n")
	if missed > 0 {
		l.fail(fmt.Errorf("%d figures were missed; hint: is the machine at rest?", missed))
	}
}

// form is what one form of the model takes.
type form struct {
	NS     float64 `json:"ns"`
	Missed float64 `json:"missed"`
}

type times struct {
	python               map[string]form
	lindley, full        form
	exact, run, recorded time.Duration
}

// best takes turns, so that a busy moment of the machine hits all alike.
func (l *lab) best() times {
	t := times{python: map[string]form{}}
	better := func(into form, f form) form {
		if into.NS == 0 || f.NS < into.NS {
			return f
		}
		return into
	}
	for range l.rounds {
		forms := map[string]form{}
		out, err := l.python()
		if err == nil {
			err = json.Unmarshal(out, &forms)
		}
		if err != nil {
			l.fail(fmt.Errorf("bench/model.py: %w", err))
			return t
		}
		for name, f := range forms {
			t.python[name] = better(t.python[name], f)
		}
		t.lindley = better(t.lindley, l.oneCore(loadline.Options{Periods: 6_000_000, Plain: true}))
		t.full = better(t.full, l.oneCore(loadline.Options{Periods: 3_000_000, Plain: true, Rule: loadline.Published}))
		l.answers(&t)
	}
	return t
}

// oneCore is Simulate as a whole on one core, preparations and all.
func (l *lab) oneCore(o loadline.Options) form {
	n := l.node(published.Exponential, 20, 0.7, 1)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	begin := time.Now()
	r, err := loadline.Simulate(n, o)
	took := time.Since(begin)
	l.fail(err)
	return form{NS: float64(took.Nanoseconds()) / float64(r.Periods*20), Missed: r.Miss.Value}
}

// answers times what a person waits for.
func (l *lab) answers(t *times) {
	timed := func(best *time.Duration, f func() error) {
		for range 5 {
			begin := time.Now()
			l.fail(f())
			if took := time.Since(begin); *best == 0 || took < *best {
				*best = took
			}
		}
	}
	twenty, ten := l.node(published.Exponential, 20, 0.7, 1), l.node(published.Exponential, 10, 0.7, 1)
	played := l.recorded(10, 1000, 0.07, 0)
	simulate := func(n loadline.Node) func() error {
		return func() error { _, err := loadline.Simulate(n, loadline.Options{}); return err }
	}
	timed(&t.exact, func() error { _, err := loadline.Coincidence(twenty, loadline.Offsets); return err })
	timed(&t.run, simulate(ten))
	timed(&t.recorded, simulate(played))
}
