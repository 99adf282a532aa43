package policy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// shelf is one knob in a file, which we and its owner write.
type shelf struct {
	t      *testing.T
	now    time.Time
	state  *Colocation
	wanted []Setting
	file   plan.Value
	events []Event

	refuses bool // what is written
	tries   int
	writes  []plan.Value
}

func newShelf(t *testing.T, knob plan.Knob, file, want plan.Value) *shelf {
	return &shelf{t: t, now: time.Unix(1000, 0), state: NewColocation(), file: file,
		wanted: []Setting{{ID: workload.ID{Path: "/batch", Inode: 1}, Knob: knob, Value: want, Why: "test"}}}
}

// turn plans once, a second after the last, and carries the changes out.
func (s *shelf) turn() {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	stands := map[Key]plan.Value{}
	for _, k := range append(s.state.Held(), keysOf(s.wanted)...) {
		stands[k] = s.file
	}
	changes, notes := s.state.Plan(s.now, s.wanted, stands)
	for _, n := range notes {
		s.events = append(s.events, n.Event)
	}
	var results []plan.Result
	for _, c := range changes {
		if c.From != s.file {
			s.t.Errorf("change from %s, the file holds %s", c.From, s.file)
		}
		if s.tries++; s.refuses {
			results = append(results, plan.Result{Change: c, Outcome: plan.Refused, InForce: s.file, Err: "EINVAL"})
			continue
		}
		s.file = c.To
		s.writes = append(s.writes, c.To)
		results = append(results, plan.Result{Change: c, Outcome: plan.Applied, InForce: c.To})
	}
	s.state.Learn(s.now, results)
}

// TestSettleUnread: a file that would not say what stands in it is not gone, and our value in it is not its owner's.
func TestSettleUnread(t *testing.T) {
	s := newShelf(t, plan.Weight, "1024", "2")
	s.turns(2)
	s.now = s.now.Add(time.Second)
	if changes, notes := s.state.Plan(s.now, s.wanted, nil, s.wanted[0].Key()); len(changes)+len(notes) != 0 {
		t.Errorf("changes %v, notes %v of a file that was not read", changes, notes)
	}
	if got := s.standing(); got.InForce || got.Problem == "" {
		t.Errorf("verified in force without a reading: %+v", got)
	}
	s.turn()
	if !s.standing().InForce {
		t.Error("not in force, and it stands in the file")
	}
	s.wanted = nil
	s.turn()
	if s.file != "1024" {
		t.Errorf("went back to %s", s.file)
	}
}

// TestPlanSheds: what the kernel left of our CPUs is ours, and nobody else's list is.
func TestPlanSheds(t *testing.T) {
	for _, c := range []struct {
		sheds bool
		found plan.Value
		want  []Event
	}{
		{sheds: true, found: "2"},
		{sheds: true, found: "1", want: []Event{Foreign}},
		{found: "2", want: []Event{Foreign}}, // v2 keeps them in the file
	} {
		s := newShelf(t, plan.CPUs, "0-3", "2-3")
		s.wanted[0].Sheds = c.sheds
		s.turns(2)
		s.file = c.found
		s.turns(3)
		if diff := cmp.Diff(c.want, s.events); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
		s.wanted = nil
		s.turn()
		if back := s.file == "0-3"; back != (c.want == nil) {
			t.Errorf("%+v: in the end %s", c, s.file)
		}
	}
}

// TestPlanShedsAsItLeaves: also where it happens after the last Plan.
func TestPlanShedsAsItLeaves(t *testing.T) {
	s := newShelf(t, plan.CPUs, "0-3", "2-3")
	s.wanted[0].Sheds = true
	s.turns(2)
	s.file, s.wanted = "3", nil
	s.turn()
	if s.file != "0-3" {
		t.Errorf("in the end %s", s.file)
	}
}

// TestRestoredRefused: what a restore could not put back is not taken for its owner's.
func TestRestoredRefused(t *testing.T) {
	s := newShelf(t, plan.Weight, "1024", "2")
	s.turns(2)
	k := s.wanted[0].Key()
	s.state.Restored([]plan.Result{{Change: plan.Change{Cgroup: k.ID, Knob: k.Knob, Restore: true}, Outcome: plan.Refused}})
	s.turn()
	s.wanted = nil
	s.turn()
	if s.file != "1024" {
		t.Errorf("went back to %s", s.file)
	}
}

func keysOf(list []Setting) []Key {
	var keys []Key
	for _, s := range list {
		keys = append(keys, s.Key())
	}
	return keys
}

func (s *shelf) turns(n int) {
	for range n {
		s.turn()
	}
}

func (s *shelf) standing() Standing {
	s.t.Helper()
	list := s.state.Standings()
	if len(list) != 1 {
		s.t.Fatalf("%d knobs", len(list))
	}
	return list[0]
}

func TestSettleWritesOnceAndPutsBack(t *testing.T) {
	s := newShelf(t, plan.Weight, "512", "2")
	s.turns(5)
	if s.file != "2" || len(s.writes) != 1 || !s.standing().InForce || s.standing().Original != "512" {
		t.Errorf("file %s after %v, %+v", s.file, s.writes, s.standing())
	}
	s.wanted = nil
	s.turns(2)
	if s.file != "512" || len(s.writes) != 2 || len(s.state.Held()) != 0 {
		t.Errorf("no longer wanted: file %s after %v", s.file, s.writes)
	}
}

// What held the value before us stays when we go.
func TestSettleOwnsNothingThatStoodThere(t *testing.T) {
	s := newShelf(t, plan.Idle, "1", "1")
	s.turns(3)
	s.wanted = nil
	s.turns(2)
	if s.file != "1" || len(s.writes) != 0 {
		t.Errorf("file %s after %v", s.file, s.writes)
	}
}

// An owner who puts his value back once a minute, as systemd does with idle when the kubelet sends the weight, is
// answered after a second, each time.
func TestSettleOutlastsAnOwner(t *testing.T) {
	s := newShelf(t, plan.Idle, "0", "1")
	s.turns(30)
	inForce := 0
	for range 5 {
		s.file = "0"
		for range 60 {
			s.turn()
			if s.standing().InForce {
				inForce++
			}
		}
	}
	if got := s.standing(); got.Resets != 5 || inForce < 5*57 {
		t.Errorf("%d resets seen, in force %d of 300 s", got.Resets, inForce)
	}
}

// One who writes every second is not answered every second.
func TestSettleDoesNotQuarrel(t *testing.T) {
	s := newShelf(t, plan.Idle, "0", "1")
	for range 300 {
		s.turn()
		s.file = "0"
	}
	if n := len(s.writes); n > 20 || n < 5 {
		t.Errorf("%d writes in 300 s against an owner who writes each second", n)
	}
}

// Any other value is foreign: told once, and left alone.
func TestSettleLeavesForeignValues(t *testing.T) {
	s := newShelf(t, plan.Weight, "512", "2")
	s.turns(2)
	s.file = "700"
	s.turns(10)
	if got := s.standing(); s.file != "700" || !got.Foreign || got.InForce || len(s.events) != 1 || s.events[0] != Foreign {
		t.Errorf("file %s, events %v, %+v", s.file, s.events, got)
	}
}

// What the kernel refuses to take back is tried again, ever more rarely, and wanted again it is ours as before.
// TestSettleFollowsAnOwner: what an owner writes who does so at times is overwritten after a while, and stands in the end.
func TestSettleFollowsAnOwner(t *testing.T) {
	s := newShelf(t, plan.Weight, "51", "2")
	s.wanted[0].Follows = true
	s.turns(3)
	for _, resized := range []plan.Value{"102", "153"} {
		s.file = resized
		s.turns(5)
		if got := s.standing(); s.file != "2" || !got.InForce || got.Foreign || got.Original != resized {
			t.Errorf("the file holds %s, %+v, want 2 instead of %s", s.file, got, resized)
		}
	}
	if diff := cmp.Diff([]Event{Reset, Reset}, s.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	s.wanted = nil
	s.turns(2)
	if s.file != "153" {
		t.Errorf("put back to %s, want the owner's 153", s.file)
	}
}

func TestSettlePutsBackAfterARefusal(t *testing.T) {
	s := newShelf(t, plan.Quota, "400ms", "100ms")
	s.turns(2)
	s.tries = 0
	wanted := s.wanted
	s.wanted, s.refuses = nil, true
	s.turns(60)
	if got := s.standing(); s.tries < 4 || s.tries > 10 || got.InForce || !got.Leaving || got.Problem == "" || got.Value != "400ms" {
		t.Errorf("%d tries in 60 s, %+v", s.tries, got)
	}
	if in := InForce(s.state.Standings(), nil); len(in) != 0 {
		t.Errorf("in force: %v", in)
	}
	s.wanted = wanted
	s.turns(2)
	if got := s.standing(); !got.InForce || got.Leaving {
		t.Errorf("wanted again: %+v", got)
	}
	s.wanted, s.refuses = nil, false
	s.turns(70)
	if s.file != "400ms" || len(s.state.Held()) != 0 {
		t.Errorf("file %s, held %v", s.file, s.state.Held())
	}
}

// What is wanted again after its put-back was refused is written at once, and of that refusal nothing is told any more.
func TestSettleWantedAgainAfterARefusedPutBack(t *testing.T) {
	for _, value := range []plan.Value{"100ms", "50ms"} {
		s := newShelf(t, plan.Quota, "400ms", "100ms")
		s.turns(2)
		wanted := s.wanted
		s.wanted, s.refuses = nil, true
		s.turns(60)
		if got := s.standing(); got.Problem == "" {
			t.Fatalf("the put-back was not refused: %+v", got)
		}
		wanted[0].Value = value
		s.wanted, s.refuses = wanted, false
		s.turn()
		if got := s.standing(); s.file != value || !got.InForce || got.Problem != "" {
			t.Errorf("wanted again, as %s: file %s, %+v", value, s.file, got)
		}
	}
}

func TestSettleAfterARefusal(t *testing.T) {
	s := newShelf(t, plan.Weight, "512", "2")
	stands := map[Key]plan.Value{s.wanted[0].Key(): "512"}
	tries := 0
	for range 120 {
		s.now = s.now.Add(time.Second)
		changes, _ := s.state.Plan(s.now, s.wanted, stands)
		tries += len(changes)
		for _, c := range changes {
			s.state.Learn(s.now, []plan.Result{{Change: c, Outcome: plan.Refused, Err: "EINVAL"}})
		}
	}
	if got := s.standing(); tries < 3 || tries > 10 || got.Refused != int64(tries) || got.Problem == "" || got.InForce {
		t.Errorf("%d tries in two minutes, %+v", tries, got)
	}
}

func TestInForce(t *testing.T) {
	id := func(p string) workload.ID { return workload.ID{Path: p} }
	got := InForce([]Standing{
		{Setting: Setting{ID: id("/a"), Knob: plan.Idle}, InForce: true},
		{Setting: Setting{ID: id("/b"), Knob: plan.Idle}},
		{Setting: Setting{ID: id("/c"), Knob: plan.Idle}, InForce: true},
		{Setting: Setting{ID: id("/d"), Knob: plan.Idle}, InForce: true},
		{Setting: Setting{ID: id("/d"), Knob: plan.Weight}},
	}, []string{"/c"})
	for p, want := range map[string]bool{"/a": true, "/b": false, "/c": false, "/d": false} {
		if got[id(p)] != want {
			t.Errorf("%s in force: %v, want %v", p, got[id(p)], want)
		}
	}
}

// TestGateStaysForIdentities: Group Identity is switched off when no group has an identity of ours any more, also where one
// cannot be put back at once.
func TestGateStaysForIdentities(t *testing.T) {
	state, now, refused := NewColocation(), time.Unix(1000, 0), false
	gate := Setting{ID: workload.ID{Path: "/", Inode: 1}, Knob: plan.IdentitySysctl, Value: "1"}
	web := Setting{ID: workload.ID{Path: "/web", Inode: 2}, Knob: plan.Identity, Value: "2"}
	files := map[Key]plan.Value{gate.Key(): "0", web.Key(): "0"}
	turn := func(wanted ...Setting) {
		now = now.Add(time.Minute)
		changes, _ := state.Plan(now, wanted, files)
		var results []plan.Result
		for _, c := range changes {
			r := plan.Result{Change: c, Outcome: plan.Refused, InForce: c.From, Err: "EINVAL"}
			if !refused || c.Knob != plan.Identity {
				files[Key{c.Cgroup, c.Knob}] = c.To
				r = plan.Result{Change: c, Outcome: plan.Applied, InForce: c.To}
			}
			results = append(results, r)
		}
		state.Learn(now, results)
	}
	turn(web, gate)
	refused = true
	turn()
	if want := (map[Key]plan.Value{gate.Key(): "1", web.Key(): "2"}); !cmp.Equal(want, files) {
		t.Errorf("while an identity stands: %v", files)
	}
	refused = false
	turn()
	turn()
	if want := (map[Key]plan.Value{gate.Key(): "0", web.Key(): "0"}); !cmp.Equal(want, files) {
		t.Errorf("at the end: %v", files)
	}
}
