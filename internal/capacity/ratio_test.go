package capacity

import (
	"math"
	"strings"
	"testing"
)

// TestRatio: one rule for all flags that take a part or a multiple: a number, or percent with its sign.
func TestRatio(t *testing.T) {
	for text, want := range map[string]float64{"0.7": 0.7, "70%": 0.7, "70 %": 0.7, "2": 2, "200%": 2, "10": 10,
		"99.9%":  0.999,
		"20000%": 200, "0": 0, "inf": math.Inf(1), "-1": math.Inf(1)} {
		if got, err := ParseRatio(text); err != nil || math.Abs(got-want) > 1e-12 && got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"70":    "70 is 7000%: write 70% if you mean percent, or 7000%",
		"200":   "200 is 20000%: write 200% if you mean percent, or 20000%",
		"99.9":  "99.9 is 9990%: write 99.9% if you mean percent, or 9990%",
		"seven": `"seven" is not a number such as 0.7, 70% or inf`,
		"-2":    `"-2" is below 0`,
		"nan":   `"nan" is not a number such as 0.7, 70% or inf`,
		"":      `"" is not`, "x": `"x" is not`, "infinity": "is not", "1e999": "is not", "-1%": "below 0",
	} {
		if _, err := ParseRatio(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
