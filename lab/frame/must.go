package frame

import (
	"fmt"

	"plimsoll/internal/experiment"
)

// failure is an error that ends a part of a measurement.
type failure struct{ error }

// Check ends a measurement where there is an error, as testing.T.Fatal ends a test. Run returns the error once
// everything is taken away. A goroutine that a measurement starts calls it within Try only:
// elsewhere it would end the program.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Must is the value, where it comes without an error.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Try does a part of a measurement. The error is that with which Check ended it.
func Try(part func()) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			ended, is := reason.(failure)
			if !is {
				panic(reason) // a fault of the program
			}
			err = ended.error
		}
	}()
	part()
	return nil
}

// In does a part of a measurement, and names it in the error that ends it.
func In(name string, part func()) {
	if err := Try(part); err != nil {
		Check(fmt.Errorf("%s: %w", name, err))
	}
}

// Turns has modes take turns in rounds, and collects what each slot gave. Line tells of a slot.
func Turns[M, S any](b *Bench, rounds int, seed uint64, modes []M, slot func(round int, mode M) S,
	line func(S) string) []S {
	return Must(experiment.Turns(b.Say, rounds, seed, modes, func(round int, mode M) (s S, err error) {
		err = Try(func() { s = slot(round, mode) })
		return s, err
	}, line))
}

// Around reads before and after something is done.
func Around[T any](read func() T, do func()) (before, after T) {
	before = read()
	do()
	return before, read()
}
