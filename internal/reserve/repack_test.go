package reserve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
)

// TestGrown: a packed one that grows to a whole CPU goes, and those beside it stay.
func TestGrown(t *testing.T) {
	m := Machine{Topology: shape{1, 1, 1, 4, 1}.topology(), MinShared: 1}
	got := Allocate(m, []Want{{Name: "a", CPUs: 1, Has: cpu.Set{0}}, {Name: "b", CPUs: 0.3, Has: cpu.Set{0}},
		{Name: "c", CPUs: 0.3, Has: cpu.Set{0}}})
	want := map[string]cpu.Set{"a": {1}, "b": {0}, "c": {0}}
	if diff := cmp.Diff(want, got.Sets); diff != "" {
		t.Error(diff)
	}
}

// TestMovedForNothing: where packing closer does not help a newcomer, nobody is moved.
func TestMovedForNothing(t *testing.T) {
	m := Machine{Topology: shape{1, 1, 1, 6, 1}.topology(), MinShared: 1}
	packed := []Want{{Name: "a", CPUs: 0.3, Has: cpu.Set{0}}, {Name: "b", CPUs: 0.3, Has: cpu.Set{1}},
		{Name: "c", CPUs: 2, Has: cpu.Set{2, 3}}}
	for within, moved := range map[string]bool{"2-3": false, "1-2": true} {
		got := Allocate(m, append(slices.Clone(packed), Want{Name: "new", CPUs: 1, Within: set(t, within)}))
		stay := got.Sets["a"].Equal(cpu.Set{0}) && got.Sets["b"].Equal(cpu.Set{1})
		if stay == moved || (got.Sets["new"] == nil) == moved {
			t.Errorf("within %s: %v, refused %v", within, got.Sets, got.Refused)
		}
	}
}

// TestFewestMoves holds each arrival on small machines against all packings that there are.
func TestFewestMoves(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 9))
	moved, refused := 0, 0
	for range 700 {
		cpus := 2 + rnd.IntN(2)
		m := Machine{Topology: shape{1, 1, 1, cpus + 1, 1}.topology(), MinShared: 1}
		present := randomPacking(rnd, cpus)
		fresh := Want{Name: "new", CPUs: draw(rnd, 6)}
		got := Allocate(m, append(slices.Clone(present), fresh))
		least := brute(m, present, fresh)
		moves := 0
		for _, w := range present {
			if !got.Sets[w.Name].Equal(w.Has) {
				moves++
			}
		}
		if got.Sets["new"] == nil {
			refused++
			moves = -1
		}
		if moves != least {
			t.Fatalf("%d moves, %d do (-1: refused)\n%v\n%v\n%v", moves, least, present, fresh, got)
		}
		if moves > 0 {
			moved++
		}
	}
	if moved < 30 || refused < 30 {
		t.Errorf("only %d cases with moves, %d refused", moved, refused)
	}
}

// randomPacking fills CPUs with what fits, some with whole wants.
func randomPacking(rnd *rand.Rand, cpus int) []Want {
	var present []Want
	for c := range cpus {
		if rnd.IntN(6) == 0 {
			if rnd.IntN(2) == 0 {
				present = append(present, Want{Name: fmt.Sprint("w", c), CPUs: 1, Has: cpu.Set{c}})
			}
			continue
		}
		room := 20
		for i := 0; i < 3 && room > 1; i++ {
			part := 1 + rnd.IntN(min(room, 12))
			if room -= part; rnd.IntN(4) > 0 { // else it is gone
				present = append(present, Want{Name: fmt.Sprint("f", c, ".", i), CPUs: min(float64(part)/20, 0.95),
					Has: cpu.Set{c}})
			}
		}
	}
	return present
}

// brute is the fewest moves with which a newcomer fits; -1: it does not fit.
func brute(m Machine, present []Want, fresh Want) int {
	cpus := len(m.Topology.Places)
	var parts []Want
	room := slices.Repeat([]float64{1}, cpus)
	for _, w := range present {
		if w.CPUs >= 1 {
			room[w.Has[0]] = 0
		} else {
			parts = append(parts, w)
		}
	}
	need := 0
	if fresh.CPUs >= 1 {
		need = int(math.Ceil(fresh.CPUs - epsilon))
	} else {
		parts = append(parts, fresh)
	}
	best := -1
	var try func(i, moves int)
	try = func(i, moves int) {
		if best >= 0 && moves >= best {
			return
		}
		if i == len(parts) {
			free := 0
			for _, r := range room {
				if r > 1-epsilon {
					free++
				}
			}
			if free-need >= int(m.MinShared) {
				best = moves
			}
			return
		}
		for c := range cpus {
			if room[c] < parts[i].CPUs-epsilon {
				continue
			}
			cost := 0
			if parts[i].Has != nil && parts[i].Has[0] != c {
				cost = 1
			}
			room[c] -= parts[i].CPUs
			try(i+1, moves+cost)
			room[c] += parts[i].CPUs
		}
	}
	try(0, 0)
	return best
}

// TestManyAreRefused: the searches for moves are bounded together, not for each one that is refused. Each of these
// finds as much room as it needs, in pieces that are too small.
func TestManyAreRefused(t *testing.T) {
	a := newAllocator(Machine{Topology: shape{1, 1, 1, 41, 1}.topology(), MinShared: 1})
	for i := range 40 {
		a.keep(Want{Name: fmt.Sprint("a", i), CPUs: 0.6, Has: cpu.Set{i}})
	}
	for i := range 100 {
		a.place(Want{Name: fmt.Sprint("b", i), CPUs: 0.5})
	}
	// each that finds the budget spent counts a step or two
	if len(a.refused) != 100 || a.steps < maxSteps || a.steps > maxSteps+200 {
		t.Errorf("%d refused in %d steps, want %d", len(a.refused), a.steps, maxSteps)
	}
}

// TestLargeIsFast: the search for moves ends on a machine where it cannot be complete.
func TestLargeIsFast(t *testing.T) {
	m := Machine{Topology: shape{8, 1, 4, 16, 2}.topology(), MinShared: 1}
	var wants []Want
	for i := range 1022 {
		wants = append(wants, Want{Name: fmt.Sprint("a", i), CPUs: 0.6, Has: cpu.Set{i}})
	}
	got := Allocate(m, append(wants, Want{Name: "b", CPUs: 3}, Want{Name: "c", CPUs: 0.4}))
	if len(got.Sets) != 1023 || len(got.Refused) != 1 || !strings.Contains(got.Refused[0].Why, "1 is left") {
		t.Errorf("%d sets, refused %v", len(got.Sets), got.Refused)
	}
}
