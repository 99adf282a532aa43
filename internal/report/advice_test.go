package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/golden"
)

// adviceOf is advice on ten containers of one kind, which a case changes.
func adviceOf(change func(a *Advice, k *AdvisedKind)) Advice {
	pods, sure := 12, 0.93
	a := Advice{Schema: AdviceSchema, Target: 0.999, Tolerated: 0.01, MostBurst: 1, CPUs: 4, Count: 10, Committed: 1,
		Stable: true, Largest: 1.4, Granted: 1,
		Miss: 0.0004, MissCI: [2]float64{0.0003, 0.0006}, MostPods: &pods, Sure: &sure, TurningRho: 0.12,
		Period: 100 * time.Millisecond, Periods: 36000,
		Conditions: []string{"demand stays as it was recorded"}}
	k := AdvisedKind{Name: "default/web/nginx", Count: 10, Limit: 0.4, Mean: 0.12, ThrottledWithout: 0.041,
		ThrottledWith: 0.0028, DelayWithout: 0.045,
		DelayWith: 0.0031, Needed: 0.43, Enough: true, LimitAlone: 0.55, LimitBurst: 0.31, Saving: 0.9}
	change(&a, &k)
	a.Kinds = append(a.Kinds, k)
	return a
}

// TestAdviceGolden holds the words against testdata/advice.
func TestAdviceGolden(t *testing.T) {
	for name, change := range map[string]func(a *Advice, k *AdvisedKind){
		"enough":      func(*Advice, *AdvisedKind) {},
		"limit-alone": func(_ *Advice, k *AdvisedKind) { k.ThrottledWithout, k.LimitAlone = 0.002, 0.35 },
		"rise": func(_ *Advice, k *AdvisedKind) {
			k.Needed, k.Enough, k.LimitBurst, k.Saving = 4.1, false, 0.61, -2.1
		},
		"any-burst": func(a *Advice, _ *AdvisedKind) {
			a.Largest, a.TurningRho, a.Miss, a.MissCI = Quotas(math.Inf(1)), 1, 0, [2]float64{0, 3e-6}
		},
		"unknown-rho": func(a *Advice, _ *AdvisedKind) { a.TurningRho = Correlation(math.NaN()) },
		"little": func(a *Advice, k *AdvisedKind) {
			a.Largest, a.Granted, a.TurningRho, k.Enough, k.Saving, k.LimitBurst = 0.25, 0.25, 0, false, -0.3, 0.43
		},
		"no-burst": func(a *Advice, k *AdvisedKind) {
			a.Largest, a.Granted, a.TurningRho, a.Miss, k.Enough, k.LimitBurst, k.Saving = 0, 0, 0, 0, false, 0.55, -1.5
		},
		"over": func(a *Advice, k *AdvisedKind) {
			a.Largest, a.Granted, a.TurningRho, a.Miss, a.Committed, k.Enough = 0, 0, 0, 0.03, 1.6, false
			k.LimitBurst, k.Saving = 0.55, -1.5
		},
		"saturated": func(a *Advice, k *AdvisedKind) {
			a.Stable, a.MostPods, a.Sure, a.Granted, k.Saturated = false, nil, nil, 0, true
			k.LimitBurst, k.Saving = 0.55, -1.5
		},
		"several": func(a *Advice, _ *AdvisedKind) {
			a.MostPods, a.Sure = nil, nil
			a.Kinds = []AdvisedKind{{Name: "a\x1b[1m", Count: 3, Limit: 1, Mean: 0.1, LimitAlone: 0.2, LimitBurst: 0.15,
				Saving: 2.55}}
		},
	} {
		var got bytes.Buffer
		if err := adviceOf(change).Text(&got); err != nil {
			t.Fatal(err)
		}
		golden.File(t, "advice/"+name+".txt", got.String())
	}
}

// TestUnboundedBurstInJSON: JSON knows no infinity, and no NaN.
func TestUnboundedBurstInJSON(t *testing.T) {
	for burst, want := range map[Quotas]string{Quotas(math.Inf(1)): `"burst_largest":null`,
		0.5: `"burst_largest":0.5`} {
		data, err := json.Marshal(Advice{Largest: burst})
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s, %v", data, err)
		}
	}
	data, err := json.Marshal(Advice{TurningRho: Correlation(math.NaN())})
	if err != nil || !strings.Contains(string(data), `"turning_rho":null`) {
		t.Errorf("%s, %v", data, err)
	}
	data, err = json.Marshal(Point{Burst: math.Inf(1), Cgroups: 3})
	if err != nil || !strings.Contains(string(data), `"burst":null,"cgroups":3`) {
		t.Errorf("%s, %v", data, err)
	}
}

// TestProbabilities are spelled with the digits that matter, at both ends.
func TestProbabilities(t *testing.T) {
	for p, want := range map[float64][2]string{
		0: {"0 %", "100 %"}, 1: {"100.0 %", "0.0 %"}, 0.5: {"50.0 %", "50.0 %"}, 0.0394: {"3.94 %", "96.06 %"},
		0.00012345: {"0.0123 %", "99.9877 %"},
		2.5e-7:     {"0.0000250 %", "99.9999750 %"}, 1e-12: {"< 0.000001 %", "> 99.999999 %"},
	} {
		if got := [2]string{chance(p), certainty(p)}; got != want {
			t.Errorf("%g: %q, want %q", p, got, want)
		}
	}
	for n, want := range map[float64]string{0: "0", 1e-9: "< 0.000001", 0.00414: "0.00414", 0.876: "0.876",
		28.94: "28.9", 1234: "1234"} {
		if got := delay(n); got != want {
			t.Errorf("delay %g: %q, want %q", n, got, want)
		}
	}
}

// TestRiskBar: a block is a decade.
func TestRiskBar(t *testing.T) {
	for p, want := range map[float64]string{0: "", 1e-6: "", 1e-5: "█", 1: strings.Repeat("█", 6), 2e-6: "▎"} {
		if got := bar(p); got != want {
			t.Errorf("%g: %q, want %q", p, got, want)
		}
	}
}
