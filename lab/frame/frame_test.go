package frame

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/figure"
)

// found is a result whose aims depend on the value.
type found struct{ value float64 }

func (f *found) WriteText(page *bytes.Buffer) { page.WriteString("found\n") }

func (f *found) Aims() []experiment.Figure {
	return []experiment.Figure{{Name: "value", Value: f.value, AtMost: 1, Measured: true},
		{Name: "reported", Value: 9, Measured: true},
		{Name: "unmeasured and without an aim"}}
}

// trial is an experiment without groups.
type trial struct {
	Settings
	span    time.Duration
	rounds  int
	measure func(context.Context, *Bench) (*found, error)
}

func (t *trial) Flags(set *flag.FlagSet) {
	SecondsVar(set, &t.span, "seconds", "how long")
	set.IntVar(&t.rounds, "rounds", t.rounds, "how often")
}

func (t *trial) Check() error {
	return errors.Join(Within("-rounds", t.rounds, 1, 9), Within("-seconds", t.span, time.Second, time.Minute))
}

func (t *trial) Measure(ctx context.Context, b *Bench) (*found, error) { return t.measure(ctx, b) }

func usual() *trial {
	return &trial{Settings: Settings{Groups: NoGroups}, span: 5 * time.Second, rounds: 3}
}

func TestParse(t *testing.T) {
	s := usual()
	if err := Parse("trial", s, []string{"-seconds", "2.5", "-json", "-cgroup-root", "/x"}); err != nil {
		t.Fatal(err)
	}
	if s.span != 2500*time.Millisecond || s.rounds != 3 || !s.JSON || s.Strict || s.Root != "/x" {
		t.Errorf("%+v", s)
	}
	set := flag.NewFlagSet("trial", flag.ContinueOnError)
	var help bytes.Buffer
	set.SetOutput(&help)
	usual().Flags(set)
	if set.PrintDefaults(); !strings.Contains(help.String(), "how long (default 5)") {
		t.Errorf("the default of -seconds is not shown:\n%s", &help)
	}
	for _, args := range [][]string{{"-rounds", "0"}, {"-rounds", "10"}, {"-seconds", "0.9"}, {"-seconds", "61"}} {
		if err := Parse("trial", usual(), args); err == nil || !strings.Contains(err.Error(), args[0]) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestRun: what was started last ends first, and a scope's before what follows it, also where the experiment fails.
func TestRun(t *testing.T) {
	broken, stuck := errors.New("broken"), errors.New("stuck")
	var ended []string
	end := func(name string, err error) func() error {
		return func() error { ended = append(ended, name); return err }
	}
	s := usual()
	s.measure = func(ctx context.Context, b *Bench) (*found, error) {
		b.Undo(end("groups", stuck))
		b.Undo(end("server", nil))
		b.Scope(ctx, func(b *Bench) {
			b.Undo(end("load", nil))
			b.Undo(end("agent", nil))
		})
		return &found{}, end("measured", broken)()
	}
	r, err := Run(t.Context(), "trial", s, t.Logf)
	if r != nil || !errors.Is(err, broken) || !errors.Is(err, stuck) {
		t.Errorf("%v, %v", r, err)
	}
	if want := []string{"agent", "load", "measured", "server", "groups"}; !slices.Equal(want, ended) {
		t.Errorf("ended %v, want %v", ended, want)
	}
	asked := errors.New("asked to end")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(asked)
	if _, err := Run(ctx, "trial", s, t.Logf); !errors.Is(err, asked) || errors.Is(err, broken) {
		t.Errorf("interrupted: %v", err)
	}
	s.measure = func(_ context.Context, b *Bench) (*found, error) {
		b.Undo(func() error { return nil })
		return &found{value: 7}, nil
	}
	if r, err := Run(t.Context(), "trial", s, t.Logf); err != nil || r.value != 7 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestCheckEndsTheMeasurement: the first failure ends it, everything is taken away, and the error says where it was.
func TestCheckEndsTheMeasurement(t *testing.T) {
	broken := errors.New("broken")
	var ended []string
	s := usual()
	s.measure = func(ctx context.Context, b *Bench) (*found, error) {
		b.Undo(func() error { ended = append(ended, "bench"); return nil })
		values := Turns(b, 1, 1, []string{"only"}, func(int, string) int {
			b.Scope(ctx, func(b *Bench) {
				b.Undo(func() error { ended = append(ended, "scope"); return nil })
				In("step", func() { Must(Must(7, nil), broken) })
			})
			return 7
		}, func(int) string { return "" })
		t.Errorf("it goes on with %v", values)
		return &found{}, nil
	}
	_, err := Run(t.Context(), "trial", s, t.Logf)
	if !errors.Is(err, broken) || err.Error() != "only, round 1: step: broken" ||
		!slices.Equal(ended, []string{"scope", "bench"}) {
		t.Errorf("%v, ended %v", err, ended)
	}
	defer func() {
		if recover() == nil {
			t.Error("a fault of the program was taken for a failure")
		}
	}()
	_ = Try(func() { panic("fault") })
}

// measured is a row.
type measured struct {
	Name  string
	P99   float64
	Took  time.Duration
	Split struct{ Ran, waited float64 }
	count int
}

func TestMedians(t *testing.T) {
	var rows []measured
	for _, v := range []float64{3, 50, 1} {
		rows = append(rows, measured{Name: "a", P99: v, Took: time.Duration(v),
			Split: struct{ Ran, waited float64 }{2 * v, v}, count: 1})
	}
	if got, want := Medians(rows), (measured{P99: 3, Took: 3,
		Split: struct{ Ran, waited float64 }{6, 0}}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := Medians([]measured(nil)); got != (measured{}) {
		t.Errorf("of none: %+v", got)
	}
	if Find(rows, func(m measured) bool { return m.P99 > 9 }) != &rows[1] ||
		Find(rows, func(m measured) bool { return m.P99 > 99 }) != nil {
		t.Error("a row is not found")
	}
}

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		r      any
		strict bool
		want   string
	}{
		"met":                {&found{1}, true, ""},
		"missed":             {&found{2}, true, "aim missed: value"},
		"missed, not strict": {&found{2}, false, ""},
		"no aims":            {struct{}{}, true, ""},
	} {
		got := ""
		if err := verdict(c.r, c.strict); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// drawn has a picture.
type drawn struct{}

func (drawn) Chart() *figure.Canvas { return figure.Lines{Panels: []figure.Panel{{}}}.Draw() }

func TestSave(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.svg")
	if err := save(file, drawn{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(got), "<svg") {
		t.Errorf("%q, %v", got, err)
	}
	if err := save(file, &found{}); err == nil {
		t.Error("a result without a picture is drawn")
	}
}
