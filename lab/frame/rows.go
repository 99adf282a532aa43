package frame

import (
	"math"
	"reflect"
	"slices"

	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
)

// Of are the slots of one mode, row or situation.
func Of[S any, M comparable](slots []S, mode M, of func(S) M) []S {
	var mine []S
	for _, s := range slots {
		if of(s) == mode {
			mine = append(mine, s)
		}
	}
	return mine
}

// Medians is the row of some slots, which have its type: each exported number is the median of theirs. What else a row
// has is left zero.
func Medians[R any](slots []R) (row R) {
	var from []reflect.Value
	for i := range slots {
		from = append(from, reflect.ValueOf(&slots[i]).Elem())
	}
	medians(reflect.ValueOf(&row).Elem(), from)
	return row
}

func medians(row reflect.Value, from []reflect.Value) {
	for i := range row.NumField() {
		var fields []reflect.Value
		for _, s := range from {
			fields = append(fields, s.Field(i))
		}
		switch field := row.Field(i); {
		case field.Kind() == reflect.Struct:
			medians(field, fields)
		case field.CanFloat() && field.CanSet():
			field.SetFloat(experiment.MedianOf(fields, reflect.Value.Float))
		case field.CanInt() && field.CanSet():
			middle := experiment.MedianOf(fields, func(v reflect.Value) float64 { return float64(v.Int()) })
			field.SetInt(int64(math.RoundToEven(middle)))
		}
	}
}

// Find is the first row that has a property; nil where none has.
func Find[R any](rows []R, has func(R) bool) *R {
	if i := slices.IndexFunc(rows, has); i >= 0 {
		return &rows[i]
	}
	return nil
}

// Pool is what became of the loads of slots.
func Pool[S any](slots []S, of func(S) *load.Outcome) *load.Outcome {
	var list []*load.Outcome
	for _, s := range slots {
		list = append(list, of(s))
	}
	return load.Pool(list...)
}
