// Package slab uses the memory of a turn again in the next one.
//
// A turn over a thousand pods makes some megabytes of values that are garbage when it ends. Go's collector stops all
// threads for a moment in each of its cycles, and while it marks it occupies what they need to run: on a node whose
// CPUs are busy the thread that answers throttles then waits for threads that have no CPU (make bench-hostile).
package slab

// Slab hands out values that are used until its next Reset.
type Slab[T any] struct{ list []T }

// chunk is for how many values room is made where there were more than Reset was told.
const chunk = 64

// Reset takes all values back, and makes room for so many. Whoever still has one has its memory for himself no more.
func (s *Slab[T]) Reset(n int) { s.list = Room(s.list, n) }

// New is a zero value. It is not moved when more are made.
func (s *Slab[T]) New() *T {
	if len(s.list) == cap(s.list) {
		s.list = make([]T, 0, chunk)
	}
	s.list = s.list[:len(s.list)+1]
	return &s.list[len(s.list)-1]
}

// Room is an empty list with room for so many: that of before, whose values are cleared, unless it has too little or
// far too much.
func Room[T any](before []T, n int) []T {
	if c := cap(before); c < n || c > 4*n+chunk {
		return make([]T, 0, n)
	}
	clear(before)
	return before[:0]
}
