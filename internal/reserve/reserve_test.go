package reserve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
)

// shape is a machine of equal sockets. As on most machines, the second threads have the numbers after all cores.
type shape struct{ sockets, nodes, caches, cores, threads int } // nodes in a socket, caches in a node, cores in a cache

func (s shape) topology() cpu.Topology {
	t := cpu.Topology{Distance: map[int][]int{}}
	cores := s.sockets * s.nodes * s.caches * s.cores
	for c := range cores * s.threads {
		core := c % cores
		cache := core / s.cores
		node := cache / s.caches
		t.Places = append(t.Places, cpu.Place{CPU: c, Core: core, Cache: cache, Node: node, Socket: node / s.nodes,
			Capacity: 1})
	}
	for a := range s.sockets * s.nodes {
		for b := range s.sockets * s.nodes {
			d := 10
			if a != b {
				d = 12
			}
			if a/s.nodes != b/s.nodes {
				d = 20 + min((a/s.nodes-b/s.nodes+s.sockets)%s.sockets, (b/s.nodes-a/s.nodes+s.sockets)%s.sockets)
			}
			t.Distance[a] = append(t.Distance[a], d)
		}
	}
	return t
}

func set(t testing.TB, text string) cpu.Set {
	t.Helper()
	s, err := cpu.ParseSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPlacement: which CPUs a newcomer gets on a machine that is partly taken. The machine has two sockets of two
// caches of four cores of two threads: cores 0-3, 4-7 | 8-11, 12-15, and their second threads 16 above.
func TestPlacement(t *testing.T) {
	for _, c := range []struct {
		name  string
		taken string // by whole CPUs
		need  float64
		want  string
	}{
		{"two are a whole core", "", 2, "0,16"},
		{"one is half of a core that is open already", "5", 1, "21"},
		{"one opens the fullest cache", "0-1,16-17", 1, "2"},
		{"three are a core and a half, in one cache", "", 3, "0-1,16"},
		{"three in the fullest cache that holds them", "0-1,8,16-17", 3, "2-3,18"},
		{"whole cores rather than halves in an equally full cache", "0-3,4-5,20-21", 4, "6-7,22-23"},
		{"a cache, in the socket that is open already", "0", 8, "4-7,20-23"},
		{"the socket that still holds it", "0", 16, "8-15,24-31"},
		{"more than a socket: all of one, then a core of the other", "0", 18, "1,8-15,17,24-31"},
		{"nothing has it whole", "0,4,8,12,16,20,24,28", 7, "1-3,5,17-19"},
	} {
		m := Machine{Topology: shape{2, 1, 2, 4, 2}.topology(), MinShared: 1}
		wants := []Want{{Name: "new", CPUs: c.need}}
		if taken := set(t, c.taken); len(taken) > 0 {
			wants = append(wants, Want{Name: "old", CPUs: float64(len(taken)), Has: taken})
		}
		got := Allocate(m, wants)
		if got.Sets["new"].String() != c.want || len(got.Refused) > 0 {
			t.Errorf("%s: %s, want %s; refused %v", c.name, got.Sets["new"], c.want, got.Refused)
		}
	}
}

// TestNearNodes: what does not fit one node goes to the nearest of the others, not to the first.
func TestNearNodes(t *testing.T) {
	// sockets on a ring: 0 is as far from 1 as from 3
	m := Machine{Topology: shape{4, 1, 1, 2, 1}.topology(), MinShared: 1}
	got := Allocate(m, []Want{{Name: "new", CPUs: 4}, {Name: "old", CPUs: 3, Has: cpu.Set{0, 2, 3}}})
	if want := "4-7"; got.Sets["new"].String() != want {
		t.Errorf("%s, want the neighbours %s", got.Sets["new"], want)
	}
	got = Allocate(m, []Want{{Name: "old", CPUs: 3, Has: cpu.Set{6, 7}}})
	if want := "0,6-7"; got.Sets["old"].String() != want && got.Sets["old"].String() != "4,6-7" {
		t.Errorf("it grows to %s", got.Sets["old"])
	}
}

func TestPacking(t *testing.T) {
	m := Machine{Topology: shape{1, 1, 1, 4, 1}.topology(), MinShared: 1}
	got := Allocate(m, []Want{{Name: "a", CPUs: 0.5}, {Name: "b", CPUs: 0.75}, {Name: "c", CPUs: 0.25},
		{Name: "d", CPUs: 0.5}, {Name: "e", CPUs: 1.5},
		{Name: "f", CPUs: 0}})
	want := Allocation{
		Sets:   map[string]cpu.Set{"a": {0}, "b": {1}, "c": {1}, "d": {0}},
		Packed: map[string]bool{"a": true, "b": true, "c": true, "d": true},
		Shared: cpu.Set{2, 3},
		Refused: []Refusal{{"f", "it has neither a request nor a limit"}, {"e", "it needs 2 CPUs (request 1.5); of 4 " +
			"CPUs online, 2 are exclusive already, and the share pool keeps 1: 1 is left"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestArithmetic(t *testing.T) {
	m := Machine{Topology: shape{1, 1, 1, 8, 1}.topology(), MinShared: 1, Requested: 2.5, Kept: cpu.Set{0, 9}}
	got := Allocate(m, []Want{{Name: "old", CPUs: 3, Has: cpu.Set{1, 2, 3}},
		{Name: "new", CPUs: 2.5, Within: cpu.Set{3, 4}}})
	want := []Refusal{{"new", "it needs 3 CPUs (request 2.5); of 8 CPUs online, 3 are exclusive already, 1 is kept " +
		"back (0,9), and the share pool keeps 2.5 (the requests in it): 2.5 are left, 1 of them within 3-4, where " +
		"its groups may run"}}
	if diff := cmp.Diff(want, got.Refused); diff != "" {
		t.Error(diff)
	}
	m.Requested = 6 // those who have CPUs are not put out for it
	if got := Allocate(m, []Want{{Name: "old", CPUs: 3, Has: cpu.Set{1, 2, 3}}}); len(got.Refused) > 0 {
		t.Errorf("%v", got.Refused)
	}
}

// TestByNode: one that has not asked itself leaves those others room that have no exclusive CPUs, although they may get
// some later; one that asks does not wait for them.
func TestByNode(t *testing.T) {
	m := Machine{Topology: shape{1, 1, 1, 4, 1}.topology(), MinShared: 1}
	for _, c := range []struct {
		cpus    []float64
		want    map[string]cpu.Set
		refused string // the first one's arithmetic
	}{
		{[]float64{1, 1, 1}, map[string]cpu.Set{"a": {0}, "b": {1}, "c": {2}}, ""},
		{[]float64{0.5, 0.5, 1}, map[string]cpu.Set{"a": {0}, "b": {0}, "c": {1}}, ""},
		{[]float64{1, 2, 1}, map[string]cpu.Set{"a": {0}, "b": {1, 2}},
			"it needs 1 CPU (request 1); of 4 CPUs online, 3 are exclusive already, " +
				"and the share pool keeps 1: 0 are left"},
		// rounded up, the first would leave the two others 2 CPUs for the 2.2 that they request
		{[]float64{1.5, 1.1, 1.1}, map[string]cpu.Set{},
			"it needs 2 CPUs (request 1.5); of 4 CPUs online, 0 are exclusive already, " +
				"and the share pool keeps 2.2 (the requests in it): 1.8 are left"},
	} {
		var wants []Want
		for i, n := range c.cpus {
			wants = append(wants, Want{Name: string(rune('a' + i)), CPUs: n, ByNode: true})
		}
		got := Allocate(m, wants)
		refused := ""
		if len(got.Refused) > 0 {
			refused = got.Refused[0].Why
		}
		if diff := cmp.Diff(c.want, got.Sets); diff != "" || refused != c.refused {
			t.Errorf("%v: refused %q, want %q; sets -want +got\n%s", c.cpus, refused, c.refused, diff)
		}
	}
	wants := []Want{{Name: "a", CPUs: 1.5}, {Name: "b", CPUs: 1.1}, {Name: "c", CPUs: 1.1}}
	if got := Allocate(m, wants).Sets; !cmp.Equal(got, map[string]cpu.Set{"a": {0, 1}}) {
		t.Errorf("those who ask themselves: %v", got)
	}
}

// TestApart: isolated CPUs are given to nobody, and are no room for the others.
func TestApart(t *testing.T) {
	m := Machine{Topology: shape{1, 1, 1, 4, 1}.topology(), MinShared: 1, Isolated: cpu.Set{2, 3, 7}}
	got := Allocate(m, []Want{{Name: "a", CPUs: 1}, {Name: "b", CPUs: 1}})
	want := Allocation{Sets: map[string]cpu.Set{"a": {0}}, Packed: map[string]bool{}, Shared: cpu.Set{1, 2, 3},
		Refused: []Refusal{{"b",
			"it needs 1 CPU (request 1); of 4 CPUs online, 1 is exclusive already, 2 are isolated or in another's " +
				"partition (2-3), " +
				"and the share pool keeps 1: 0 are left"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestUnequal: half as fast is half a CPU.
func TestUnequal(t *testing.T) {
	m := Machine{Topology: shape{1, 1, 2, 4, 1}.topology(), MinShared: 1}
	for i := range 4 {
		m.Topology.Places[i].Capacity = 0.5
	}
	got := Allocate(m, []Want{{Name: "a", CPUs: 1}, {Name: "b", CPUs: 3}, {Name: "c", CPUs: 1}})
	want := map[string]cpu.Set{"a": {4}, "b": {5, 6, 7}, "c": {0, 1}}
	if diff := cmp.Diff(want, got.Sets); diff != "" || len(got.Refused) > 0 {
		t.Error(diff, got.Refused)
	}
}

// TestProperties: on any machine, through any history, sets are disjoint but for those that are packed, every CPU and
// every want is accounted for, the share pool keeps its least, and whoever need not move does not.
func TestProperties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for n := range 120 {
		m := Machine{Topology: randomShape(rnd).topology(), MinShared: 1 + float64(rnd.IntN(3))}
		if rnd.IntN(3) == 0 {
			for i := range m.Topology.Places {
				m.Topology.Places[i].Capacity = []float64{0.5, 1}[m.Topology.Places[i].Core%2]
			}
		}
		if rnd.IntN(2) == 0 {
			m.Kept = cpu.Set{0, 1}
		}
		var wants []Want
		for step := range 12 {
			wants = nextWants(rnd, wants, len(m.Topology.Places), fmt.Sprint(n, ".", step))
			offline := rnd.IntN(6) == 0 && len(m.Topology.Places) > 4
			if offline {
				at := rnd.IntN(len(m.Topology.Places))
				m.Topology.Places = slices.Delete(slices.Clone(m.Topology.Places), at, at+1)
			}
			got := Allocate(m, wants)
			check(t, m, wants, got, offline)
			if diff := cmp.Diff(got, Allocate(m, wants)); diff != "" {
				t.Fatalf("the same twice: %s", diff)
			}
			var next []Want
			for _, w := range wants {
				if w.Has = got.Sets[w.Name]; w.Has != nil {
					next = append(next, w)
				}
			}
			wants = next
			again := Allocate(m, wants)
			if diff := cmp.Diff(got.Sets, again.Sets); diff != "" {
				t.Fatalf("nothing happened, and somebody moved: %s", diff)
			}
		}
	}
}

func randomShape(rnd *rand.Rand) shape {
	for {
		s := shape{1 + rnd.IntN(8), 1 + rnd.IntN(2), 1 + rnd.IntN(4), 1 + rnd.IntN(16), 1 + rnd.IntN(2)}
		if s.nodes*s.caches*s.cores <= 64 {
			return s
		}
	}
}

// nextWants has some go, some resized, and some new.
func nextWants(rnd *rand.Rand, wants []Want, cpus int, name string) []Want {
	var next []Want
	for _, w := range wants {
		switch rnd.IntN(8) {
		case 0:
			continue
		case 1:
			w.CPUs = draw(rnd, cpus)
		}
		next = append(next, w)
	}
	for i := range rnd.IntN(4) {
		w := Want{Name: fmt.Sprint(name, ".", i), CPUs: draw(rnd, cpus)}
		if rnd.IntN(5) == 0 {
			for c := rnd.IntN(cpus); c < cpus; c++ {
				w.Within = append(w.Within, c)
			}
		}
		next = append(next, w)
	}
	return next
}

func draw(rnd *rand.Rand, cpus int) float64 {
	if rnd.IntN(2) == 0 {
		return float64(1+rnd.IntN(19)) / 20
	}
	return 1 + float64(rnd.IntN(4*max(1, cpus/3)))/4
}

func check(t *testing.T, m Machine, wants []Want, got Allocation, offline bool) {
	t.Helper()
	capacity := map[int]float64{}
	owner := map[int]cpu.Set{}
	packed := map[string]float64{} // requests on a set
	for _, p := range m.Topology.Places {
		capacity[p.CPU] = p.Capacity
	}
	size := func(s cpu.Set) (sum float64) {
		for _, c := range s {
			sum += capacity[c]
		}
		return sum
	}
	refused := map[string]bool{}
	for _, r := range got.Refused {
		if refused[r.Name] || got.Sets[r.Name] != nil || r.Why == "" {
			t.Fatalf("refused twice, or not: %v", r)
		}
		refused[r.Name] = true
	}
	for _, w := range wants {
		s := got.Sets[w.Name]
		if s == nil && !refused[w.Name] {
			t.Fatalf("%v: neither placed nor refused", w)
		}
		need := w.CPUs
		if need >= 1 {
			need = math.Ceil(need)
		}
		if s != nil && (size(s) < need-epsilon || w.Within != nil && !s.Within(w.Within)) {
			t.Fatalf("%+v got %s, of %v CPUs", w, s, size(s))
		}
		for _, c := range s {
			if before := owner[c]; before != nil && (!before.Equal(s) || w.CPUs >= 1) {
				t.Fatalf("CPU %d is in %s and in %s", c, before, s)
			}
			owner[c] = s
		}
		if packed[s.String()] += w.CPUs; s != nil && packed[s.String()] > size(s)+epsilon {
			t.Fatalf("%v CPUs are packed on %s", packed[s.String()], s)
		}
		if old := w.Has.And(m.Topology.Set()); !offline && w.CPUs >= 1 && len(old) == len(w.Has) && size(old) == need &&
			s != nil && !s.Equal(old) {
			t.Fatalf("%+v moved to %s", w, s)
		}
	}
	if !got.Shared.Equal(m.Topology.Set().Minus(keys(owner))) || !m.Kept.And(m.Topology.Set()).Within(got.Shared) {
		t.Fatalf("shared %s, exclusive %v, kept %s of %s", got.Shared, owner, m.Kept, m.Topology.Set())
	}
	if len(owner) > 0 && size(got.Shared) < m.MinShared-epsilon {
		t.Fatalf("shared %s, at least %v", got.Shared, m.MinShared)
	}
}

func keys(owner map[int]cpu.Set) cpu.Set {
	var s cpu.Set
	for c := range owner {
		s = append(s, c)
	}
	slices.Sort(s)
	return s
}
