package ledger

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
	ledger *Ledger
	wanted []plan.Intent
	key    plan.Key
	file   plan.Value
	facts  Sight // of the file, besides what it holds
	events []Event

	answer plan.Outcome // of the kernel to what is written; "": it takes it
	tries  int
	writes []plan.Value
}

func newShelf(t *testing.T, knob plan.Knob, file, want plan.Value) *shelf {
	k := plan.Key{ID: workload.ID{Path: "/batch", Inode: 1}, Knob: knob}
	return &shelf{t: t, now: time.Unix(1000, 0), ledger: New(), file: file, key: k,
		wanted: []plan.Intent{{Key: k, Value: want, Why: "test"}}}
}

// turn plans once, a second after the last, and carries the changes out.
func (s *shelf) turn() {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	sight := s.facts
	sight.InFile = s.file
	if event := s.ledger.See(s.now, s.key, sight); event != None {
		s.events = append(s.events, event)
	}
	s.plan()
}

func (s *shelf) plan() {
	s.t.Helper()
	any := func(plan.Key) bool { return true }
	var results []plan.Result
	for _, c := range append(s.ledger.Restores(s.now, s.wanted, any), s.ledger.Plan(s.now, s.wanted)...) {
		if c.From != s.file {
			s.t.Errorf("change from %s, the file holds %s", c.From, s.file)
		}
		s.tries++
		r := plan.Result{Change: c, Outcome: s.answer, InForce: s.file, Err: "EINVAL"}
		if s.answer == "" {
			s.file = c.To
			s.writes = append(s.writes, c.To)
			r = plan.Result{Change: c, Outcome: plan.Applied, InForce: c.To}
		}
		results = append(results, r)
	}
	s.ledger.Learn(s.now, results)
}

func (s *shelf) turns(n int) {
	for range n {
		s.turn()
	}
}

func (s *shelf) entry() Entry {
	s.t.Helper()
	e, known := s.ledger.Entry(s.key)
	if !known {
		s.t.Fatal("nothing is known of the file")
	}
	return e
}

// TestUnread: a file that would not say what it holds is not gone, and our value in it is not its owner's.
func TestUnread(t *testing.T) {
	s := newShelf(t, plan.Weight, "1024", "2")
	s.turns(2)
	for _, wanted := range [][]plan.Intent{s.wanted, nil} {
		was := s.wanted
		s.wanted, s.tries = wanted, 0
		s.ledger.Unread(s.key)
		s.plan()
		if e := s.entry(); s.tries > 0 || e.InForce() || e.Blocked(s.now) != plan.Unread {
			t.Errorf("%d writes to a file that was not read, in force %v, %+v", s.tries, e.InForce(), e)
		}
		s.wanted = was
	}
	s.turn()
	if e := s.entry(); !e.InForce() || e.Problem != "" || len(s.events) > 0 {
		t.Errorf("in force %v, and it stands in the file; %v, %+v", e.InForce(), s.events, e)
	}
	s.wanted = nil
	s.turn()
	if s.file != "1024" {
		t.Errorf("went back to %s", s.file)
	}
}

// TestSheds: what the kernel left of our CPUs is ours, and nobody else's list is.
func TestSheds(t *testing.T) {
	for _, c := range []struct {
		sheds bool
		found plan.Value
		want  []Event
	}{
		{sheds: true, found: "2"},
		{sheds: true, found: "1", want: []Event{Overrode}},
		{found: "2", want: []Event{Overrode}}, // v2 keeps them in the file
	} {
		s := newShelf(t, plan.CPUs, "0-3", "2-3")
		s.facts.Sheds = c.sheds
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

// TestShedsAsItLeaves: also where it happens after the last intent.
func TestShedsAsItLeaves(t *testing.T) {
	s := newShelf(t, plan.CPUs, "0-3", "2-3")
	s.facts.Sheds = true
	s.turns(2)
	s.file, s.wanted = "3", nil
	s.turn()
	if s.file != "0-3" {
		t.Errorf("in the end %s", s.file)
	}
}

// TestRestoredRefused: what a restore by command could not put back is not taken for its owner's.
func TestRestoredRefused(t *testing.T) {
	s := newShelf(t, plan.Weight, "1024", "2")
	s.turns(2)
	s.ledger.Learn(s.now,
		[]plan.Result{{Change: plan.Change{Cgroup: s.key.ID, Knob: s.key.Knob, Restore: true}, Outcome: plan.Refused}})
	s.turn()
	s.wanted = nil
	s.turn()
	if s.file != "1024" {
		t.Errorf("went back to %s", s.file)
	}
}

func TestWritesOnceAndPutsBack(t *testing.T) {
	s := newShelf(t, plan.Weight, "512", "2")
	s.turns(5)
	if e := s.entry(); s.file != "2" || len(s.writes) != 1 || !e.InForce() || e.Baseline != "512" {
		t.Errorf("file %s after %v, %+v", s.file, s.writes, e)
	}
	s.wanted = nil
	s.turns(2)
	if s.file != "512" || len(s.writes) != 2 || s.entry().Leaving {
		t.Errorf("no longer wanted: file %s after %v, %+v", s.file, s.writes, s.entry())
	}
}

// What held the value before us stays when we go.
func TestOwnsNothingThatStoodThere(t *testing.T) {
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
func TestOutlastsAnOwner(t *testing.T) {
	s := newShelf(t, plan.Idle, "0", "1")
	s.turns(30)
	inForce := 0
	for range 5 {
		s.file = "0"
		for range 60 {
			s.turn()
			if e := s.entry(); e.InForce() {
				inForce++
			}
		}
	}
	if got := s.entry(); got.Resets != 5 || inForce < 5*57 {
		t.Errorf("%d resets seen, in force %d of 300 s", got.Resets, inForce)
	}
}

// One who writes every second is not answered every second, whether the writes come between ours or into them.
func TestDoesNotQuarrel(t *testing.T) {
	for _, answer := range []plan.Outcome{"", plan.Trampled} {
		s := newShelf(t, plan.Idle, "0", "1")
		s.answer = answer
		for range 300 {
			s.turn()
			s.file = "0"
		}
		if s.tries > 20 || s.tries < 5 {
			t.Errorf("%q: %d writes in 300 s against an owner who writes each second", answer, s.tries)
		}
	}
}

// TestTrampledOnce: a write of another program into ours is no refusal: what it wrote is seen, and answered,
// in the next turn.
func TestTrampledOnce(t *testing.T) {
	for knob, values := range map[plan.Knob][3]plan.Value{plan.Weight: {"512", "2", "700"},
		plan.Quota: {"150ms", "50ms", "120ms"}} { // a quota that is lowered
		s := newShelf(t, knob, values[0], values[1])
		s.answer = plan.Trampled
		s.turn()
		if e := s.entry(); e.Refused != 1 || e.Problem == "" || e.Blocked(s.now) != plan.Free {
			t.Errorf("%+v", e)
		}
		s.answer, s.file = "", values[2]
		s.turn()
		if e := s.entry(); s.file != values[1] || e.Baseline != values[2] || e.Problem != "" {
			t.Errorf("the file holds %s, %+v", s.file, e)
		}
	}
}

// Any other value is foreign: told once, and left alone.
func TestLeavesForeignValues(t *testing.T) {
	s := newShelf(t, plan.Weight, "512", "2")
	s.turns(2)
	s.file = "700"
	s.turns(10)
	if e := s.entry(); s.file != "700" || e.State != Foreign || e.InForce() || !cmp.Equal(s.events, []Event{Overrode}) {
		t.Errorf("file %s, events %v, %+v", s.file, s.events, e)
	}
	s.wanted = nil
	s.turns(3)
	if s.file != "700" {
		t.Errorf("no longer wanted: %s", s.file)
	}
}

// TestFollowsAnOwner: what an owner writes who does so at times is overwritten after a while, and stands in the end.
func TestFollowsAnOwner(t *testing.T) {
	s := newShelf(t, plan.Weight, "51", "2")
	s.facts.Follows = true
	s.turns(3)
	for _, resized := range []plan.Value{"102", "153"} {
		s.file = resized
		s.turns(5)
		if e := s.entry(); s.file != "2" || !e.InForce() || e.Baseline != resized {
			t.Errorf("the file holds %s, %+v, want 2 instead of %s", s.file, e, resized)
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

// TestPutsBackAfterARefusal: what the kernel refuses to take back is tried again, ever more rarely, and wanted again it
// is ours as before.
func TestPutsBackAfterARefusal(t *testing.T) {
	s := newShelf(t, plan.Quota, "400ms", "100ms")
	s.turns(2)
	s.tries = 0
	wanted := s.wanted
	s.wanted, s.answer = nil, plan.Refused
	s.turns(60)
	if e := s.entry(); s.tries < 4 || s.tries > 10 || e.InForce() || !e.Leaving || e.Problem == "" ||
		e.Intended != "400ms" {
		t.Errorf("%d tries in 60 s, %+v", s.tries, e)
	}
	s.wanted = wanted
	s.turns(2)
	if e := s.entry(); !e.InForce() {
		t.Errorf("wanted again: %+v", e)
	}
	s.wanted, s.answer = nil, ""
	s.turns(70)
	if e := s.entry(); s.file != "400ms" || e.Ours() {
		t.Errorf("file %s, %+v", s.file, e)
	}
}

// TestWantedAgainAfterARefusedPutBack: it is written at once, and of that refusal nothing is told any more.
func TestWantedAgainAfterARefusedPutBack(t *testing.T) {
	for _, value := range []plan.Value{"100ms", "50ms"} {
		s := newShelf(t, plan.Quota, "400ms", "100ms")
		s.turns(2)
		wanted := s.wanted
		s.wanted, s.answer = nil, plan.Refused
		s.turns(60)
		if e := s.entry(); e.Problem == "" {
			t.Fatalf("the put-back was not refused: %+v", e)
		}
		wanted[0].Value = value
		s.wanted, s.answer = wanted, ""
		s.turn()
		if e := s.entry(); s.file != value || !e.InForce() || e.Problem != "" {
			t.Errorf("wanted again, as %s: file %s, %+v", value, s.file, e)
		}
	}
}

func TestAfterARefusal(t *testing.T) {
	s := newShelf(t, plan.Weight, "512", "2")
	s.answer = plan.Refused
	s.turns(120)
	if e := s.entry(); s.tries < 3 || s.tries > 10 || e.Refused != int64(s.tries) || e.Problem == "" || e.InForce() {
		t.Errorf("%d tries in two minutes, %+v", s.tries, e)
	}
}

// TestClamped: what the kernel cuts is asked for once in a while.
func TestClamped(t *testing.T) {
	s := newShelf(t, plan.Weight, "512", "1")
	for range 120 {
		s.turn()
		if s.file == "1" { // as if the least were 2
			s.file = "2"
			c := plan.Change{Cgroup: s.key.ID, Knob: s.key.Knob, From: "512", To: "1"}
			s.ledger.Learn(s.now, []plan.Result{{Change: c, Outcome: plan.Clamped, InForce: "2"}})
		}
	}
	if e := s.entry(); s.tries < 3 || s.tries > 10 || !e.Ours() || e.InForce() {
		t.Errorf("%d tries in two minutes, %+v", s.tries, e)
	}
	s.wanted = nil
	s.turn()
	if s.file != "512" {
		t.Errorf("went back to %s", s.file)
	}
}

// TestSysctlStaysForIdentities: Group Identity is switched off when no group has an identity of ours any more, also
// where one cannot be put back at once.
func TestSysctlStaysForIdentities(t *testing.T) {
	l, now, refused := New(), time.Unix(1000, 0), false
	sysctl := plan.Intent{Key: plan.Key{ID: workload.ID{Path: "/", Inode: 1}, Knob: plan.IdentitySysctl}, Value: "1"}
	web := plan.Intent{Key: plan.Key{ID: workload.ID{Path: "/web", Inode: 2}, Knob: plan.Identity}, Value: "2"}
	files := map[plan.Key]plan.Value{sysctl.Key: "0", web.Key: "0"}
	turn := func(intents ...plan.Intent) {
		now = now.Add(time.Minute)
		for key, held := range files {
			l.See(now, key, Sight{InFile: held})
		}
		var results []plan.Result
		for _, c := range append(l.Restores(now, intents, func(plan.Key) bool { return true }),
			l.Plan(now, intents)...) {
			r := plan.Result{Change: c, Outcome: plan.Refused, InForce: c.From, Err: "EINVAL"}
			if !refused || c.Knob != plan.Identity {
				files[plan.Key{ID: c.Cgroup, Knob: c.Knob}] = c.To
				r = plan.Result{Change: c, Outcome: plan.Applied, InForce: c.To}
			}
			results = append(results, r)
		}
		l.Learn(now, results)
	}
	turn(web, sysctl)
	refused = true
	turn()
	if want := (map[plan.Key]plan.Value{sysctl.Key: "1", web.Key: "2"}); !cmp.Equal(want, files) {
		t.Errorf("while an identity stands: %v", files)
	}
	refused = false
	turn()
	turn()
	if want := (map[plan.Key]plan.Value{sysctl.Key: "0", web.Key: "0"}); !cmp.Equal(want, files) {
		t.Errorf("at the end: %v", files)
	}
}
