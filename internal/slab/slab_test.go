package slab

import "testing"

// TestSlab: values are zero, apart from each other, and stay where they are until the next Reset; then their memory is
// used again.
func TestSlab(t *testing.T) {
	var s Slab[int]
	for round := range 3 {
		s.Reset(100)
		var all []*int
		for i := range 100 + 2*chunk {
			v := s.New()
			if *v != 0 {
				t.Fatalf("round %d: value %d begins as %d", round, i, *v)
			}
			*v = i + 1
			all = append(all, v)
		}
		for i, v := range all {
			if *v != i+1 {
				t.Fatalf("round %d: value %d has become %d", round, i, *v)
			}
		}
	}
	s.Reset(100)
	first := s.New()
	if n := testing.AllocsPerRun(10, func() {
		s.Reset(100)
		for range 100 {
			s.New()
		}
	}); n != 0 {
		t.Errorf("%v allocations for as many values as before", n)
	}
	if s.Reset(100); s.New() != first {
		t.Error("the memory of before is not used again")
	}
}

// TestRoom: the room of before is kept where it fits, without what was in it.
func TestRoom(t *testing.T) {
	before := append(make([]string, 0, 200), "a", "b")
	for n, kept := range map[int]bool{201: false, 200: true, 34: true, 33: false, 0: false} {
		list := append(before[:0], "a", "b")
		got := Room(list, n)
		if len(got) != 0 || cap(got) < n {
			t.Errorf("for %d: %d of %d", n, len(got), cap(got))
		}
		if same := cap(got) == 200; same != kept {
			t.Errorf("for %d the room for 200 is kept: %v", n, same)
		}
		if kept && list[0]+list[1] != "" {
			t.Errorf("for %d: %q is kept from the collector", n, list)
		}
	}
}
