package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ratio is a number that may be written in percent; inf and -1 are without bound.
type ratio float64

func (r *ratio) String() string { return strconv.FormatFloat(float64(*r), 'g', -1, 64) }
func (r *ratio) Type() string   { return "ratio" }

// Set reads 0.7, 70%, inf or -1.
func (r *ratio) Set(text string) error {
	v, err := parseRatio(text)
	*r = ratio(v)
	return err
}

func parseRatio(text string) (float64, error) {
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
	}
	return v, nil
}
