package capacity

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/report"
)

func TestSweepRanges(t *testing.T) {
	got, err := ParseSweep([]string{"burst=0..1:0.1,inf", "cgroups=5..15:5 utilization=50%,0.7"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Range{{"burst", []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, math.Inf(1)}},
		{"cgroups", []float64{5, 10, 15}}, {"utilization", []float64{0.5, 0.7}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := ParseSweep([]string{"burst=1", "buffer=2"}); err == nil ||
		!strings.Contains(err.Error(), "varied twice") {
		t.Errorf("error %v", err)
	}
}

// TestSweepFigures: each kind of sweep becomes a picture, with everything that it varies.
func TestSweepFigures(t *testing.T) {
	for text, want := range map[string][]string{
		"burst=0..1:0.5":                   {"burst, % of the quota", "P(WCET &gt; 1 period), %"},
		"cgroups=5,10 burst=0..1:0.5":      {"burst, % of the quota", ">5 containers<", ">10 containers<"},
		"cgroups=5,10 utilization=0.5,0.7": {"P(WCET = 1 period) = 99.9 %", ">50<", ">70<", ">10<"},
		"cgroups=5,10":                     {">containers<"},
		"cgroups=5,10 burst=0..1:0.5,inf utilization=0.5,0.7": {">10 containers<", ">mean use 70 %<",
			"burst, % of the quota"},
	} {
		ranges, err := ParseSweep([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		var sweep report.Sweep
		err = every(Case{5, 1, 0.6}, ranges, func(c Case) error {
			sweep.Points = append(sweep.Points, report.Point{Burst: c.Burst, Cgroups: c.Containers,
				Utilization: c.Utilization,
				Result:      report.Simulation{Miss: 0.01, MissCI: [2]float64{0.005, 0.02}}})
			return nil
		})
		var got bytes.Buffer
		if err := errors.Join(err, Draw(sweep, ranges).SVG(&got)); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(got.String(), w) {
				t.Errorf("%s: no %q in the picture", text, w)
			}
		}
	}
}
