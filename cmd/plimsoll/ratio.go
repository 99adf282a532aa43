package main

import (
	"strconv"

	"plimsoll/internal/capacity"
)

// ratio is a flag whose value may be written in percent.
type ratio float64

func (r *ratio) String() string { return strconv.FormatFloat(float64(*r), 'g', -1, 64) }
func (r *ratio) Type() string   { return "ratio" }

// Set reads 0.7, 70%, inf or -1.
func (r *ratio) Set(text string) error {
	v, err := capacity.ParseRatio(text)
	*r = ratio(v)
	return err
}
