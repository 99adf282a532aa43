package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/loadline"
	"plimsoll/lab/frame"
)

// aims are the figures of the issue: nanoseconds, milliseconds and ratios.
const (
	aimLindley  = 3.0
	aimExact    = 30.0
	aimRun      = 100.0
	aimNumpy    = 100.0
	aimNumba    = 5.0
	aimCompiled = 1.3
)

// speed times the model beside the same in Python, in turns, and takes the best of each.
func (l *lab) speed() {
	if l.python == nil {
		frame.Check(errors.New("no Python; hint: -python \"$(bash bench/setup.sh)\""))
	}
	t := l.best()
	l.print("nanoseconds per cgroup and period; exponential demand, m=20, u=70 %%, burst 100 %%; one core; best of "+
		"%d turns\n\n", l.rounds)
	l.print("%-58s %8s %8s\n", "form", "ns", "P(%)")
	row := func(name string, f form) { l.print("%-58s %8.2f %8.3f\n", name, f.NS, 100*f.Missed) }
	row("numpy, a loop over periods", t.python["numpy"])
	row("numba, the published steps", t.python["numba"])
	row("numba, the Lindley form (PCG64, ziggurat)", t.python["lindley"])
	row("Go, the published steps (shared out)", t.full)
	row("Go, the Lindley form", t.lindley)
	var page bytes.Buffer
	experiment.WriteFigures(&page, t.aims())
	l.print("\n%s\n", page.String())
	if missed := slices.DeleteFunc(t.aims(), experiment.Figure.Met); len(missed) > 0 {
		frame.Check(fmt.Errorf("%d figures were missed; hint: is the machine at rest?", len(missed)))
	}
}

// aims compare the times with the aims.
func (t times) aims() []experiment.Figure {
	atMost := func(name string, value, most float64) experiment.Figure {
		return experiment.Figure{Name: name, Value: value, AtMost: most, Measured: true}
	}
	faster := func(name, than string, aim float64) experiment.Figure {
		return experiment.Figure{Name: "Go's Lindley form faster than " + name + ", times",
			Value: t.python[than].NS / t.lindley.NS, AtLeast: aim, Measured: true}
	}
	return []experiment.Figure{
		atMost("Go's Lindley form, ns", t.lindley.NS, aimLindley),
		faster("numpy's loop", "numpy", aimNumpy), faster("numba's published steps", "numba", aimNumba),
		faster("numba's Lindley form", "lindley", aimCompiled),
		atMost("exact J, m=20, ms", experiment.Milliseconds(t.exact), aimExact),
		atMost("1 M periods, m=10, with intervals, all cores, ms", experiment.Milliseconds(t.run), aimRun),
		atMost("the same from a recording of 1000, with bootstrap, ms", experiment.Milliseconds(t.recorded), aimRun),
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
		frame.In("bench/model.py", func() { frame.Check(json.Unmarshal(frame.Must(l.python()), &forms)) })
		for name, f := range forms {
			t.python[name] = better(t.python[name], f)
		}
		t.lindley = better(t.lindley, oneCore(loadline.Options{Periods: 6_000_000, Plain: true}))
		t.full = better(t.full, oneCore(loadline.Options{Periods: 3_000_000, Plain: true, Rule: loadline.Published}))
		t.answers()
	}
	return t
}

// oneCore is Simulate as a whole on one core, preparations and all.
func oneCore(o loadline.Options) form {
	n := frame.Must(exponential(20, 0.7, 1).Node())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	begin := time.Now()
	r := frame.Must(loadline.Simulate(n, o))
	took := time.Since(begin)
	return form{NS: float64(took.Nanoseconds()) / float64(r.Periods*20), Missed: r.Miss.Value}
}

// answers times what a person waits for.
func (t *times) answers() {
	timed := func(best *time.Duration, f func() error) {
		for range 5 {
			begin := time.Now()
			frame.Check(f())
			if took := time.Since(begin); *best == 0 || took < *best {
				*best = took
			}
		}
	}
	twenty, ten := frame.Must(exponential(20, 0.7, 1).Node()), frame.Must(exponential(10, 0.7, 1).Node())
	played := recorded(10, 1000, 0.07, 0)
	simulate := func(n loadline.Node) func() error {
		return func() error { _, err := loadline.Simulate(n, loadline.Options{}); return err }
	}
	timed(&t.exact, func() error { _, err := loadline.Coincidence(twenty, loadline.Offsets); return err })
	timed(&t.run, simulate(ten))
	timed(&t.recorded, simulate(played))
}
