package capacity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// mostBare is the largest number without a percent sign. The default of cpuBurstPercent, 1000, is as much.
const mostBare = 10

// ParseRatio reads a number that may be written in percent; inf and -1 are without bound. The rule of all flags: 0.7
// and 70% are the same, and what is above mostBare needs its percent sign, since it is more likely meant as percent.
func ParseRatio(text string) (float64, error) {
	if text == "inf" || text == "-1" {
		return math.Inf(1), nil
	}
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	switch {
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return 0, fmt.Errorf("%q is not a number such as 0.7, 70%% or inf", text)
	case v < 0:
		return 0, fmt.Errorf("%q is below 0", text)
	case !percent && v > mostBare:
		return 0, fmt.Errorf("%s is %s%%: write %s%% if you mean percent, or %s%%", text, plainNumber(100*v),
			plainNumber(v), plainNumber(100*v))
	}
	return v, nil
}

// plainNumber spells a number without an exponent.
func plainNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
