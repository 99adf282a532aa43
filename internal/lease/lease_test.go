package lease

import (
	"testing"
	"time"
)

// seen is what is seen at one look.
type seen struct {
	at     time.Duration
	beat   time.Duration // when the last heartbeat was sent
	by     uint64        // the start of its process; 0: there is no heartbeat
	holder uint64        // the start of the holder of the lock; 0: nobody
	other  bool          // the holder has another state directory
}

// looks are looks once a second, from an instant to another.
func looks(from, to time.Duration, s seen) []seen {
	var list []seen
	for at := from; at <= to; at += time.Second {
		s.at = at
		list = append(list, s)
	}
	return list
}

// beating is an agent that works: at each look it has sent a heartbeat half a second ago.
func beating(from, to time.Duration, by uint64) []seen {
	list := looks(from, to, seen{by: by, holder: by})
	for i := range list {
		list[i].beat = list[i].at - time.Second/2
	}
	return list
}

// unseen is what is seen of an agent in another PID namespace.
func unseen(list []seen) []seen {
	for i := range list {
		list[i].holder = 0
	}
	return list
}

// TestLate: a look that comes late says so, once.
func TestLate(t *testing.T) {
	const s = time.Second
	var m Memory
	for _, look := range []struct{ at, late time.Duration }{{0, 0}, {s, 0}, {4 * s, 0}, {8 * s, 4 * s}, {9 * s, 0}} {
		if m = m.Look(look.at, Beat{}, Holder{}); m.Late() != look.late {
			t.Errorf("at %v: late by %v, want %v", look.at, m.Late(), look.late)
		}
	}
}

func TestJudge(t *testing.T) {
	const s = time.Second
	after := func(first []seen, more ...[]seen) []seen {
		for _, list := range more {
			first = append(first, list...)
		}
		return first
	}
	for name, c := range map[string]struct {
		looks []seen
		want  Action
		at    time.Duration // of the first action
	}{
		"an agent that works":     {looks: beating(0, 60*s, 1)},
		"no agent and no journal": {looks: looks(0, 60*s, seen{}), want: Restore, at: 3 * s}, // where there are entries
		"it is stopped": {
			looks: after(beating(0, 20*s, 1), looks(21*s, 60*s, seen{beat: 20 * s, by: 1, holder: 1})),
			want:  Kill, at: 30 * s},
		"it is killed": {
			looks: after(beating(0, 20*s, 1), looks(21*s, 60*s, seen{beat: 20 * s, by: 1})),
			want:  Restore, at: 30 * s},
		"it starts again in time": {
			looks: after(beating(0, 20*s, 1), looks(21*s, 25*s, seen{beat: 20 * s, by: 1}),
				looks(26*s, 28*s, seen{beat: 20 * s, by: 1, holder: 2}), beating(29*s, 60*s, 2))},
		"it starts again late, and needs its time": {
			looks: after(beating(0, 20*s, 1), looks(21*s, 28*s, seen{beat: 20 * s, by: 1}),
				looks(29*s, 38*s, seen{beat: 20 * s, by: 1, holder: 2}), beating(39*s, 60*s, 2))},
		"it hangs in its start": {
			looks: after(beating(0, 20*s, 1), looks(21*s, 60*s, seen{beat: 20 * s, by: 1, holder: 2})),
			want:  Kill, at: 31 * s},
		"it is killed after each start": { // for a moment nobody has the lock
			looks: after(beating(0, 20*s, 1), looks(21*s, 24*s, seen{beat: 20 * s, by: 1, holder: 2}),
				looks(25*s, 27*s, seen{beat: 20 * s, by: 1, holder: 3}),
				looks(28*s, 31*s, seen{beat: 20 * s, by: 1, holder: 4}),
				looks(32*s, 32*s, seen{beat: 20 * s, by: 1})),
			want: Restore, at: 32 * s},
		"a successor takes over": {
			looks: after(beating(0, 20*s, 1), looks(21*s, 23*s, seen{beat: 20 * s, by: 1, holder: 2}),
				beating(24*s, 60*s, 2))},
		"an agent of another state directory works": {looks: looks(0, 60*s,
			seen{beat: 1, by: 1, holder: 2, other: true})},
		"the lease begins to look at an agent that has hung for long": {
			looks: looks(100*s, 160*s, seen{beat: 20 * s, by: 1, holder: 1}),
			want:  Kill, at: 103 * s},
		"the lease begins to look at an agent that works": {looks: beating(100*s, 160*s, 1)},
		"both processes are frozen": {
			looks: after(beating(0, 20*s, 1), looks(80*s, 82*s, seen{beat: 20 * s, by: 1, holder: 1}),
				beating(83*s, 160*s, 1))},
		"both processes are frozen just after a heartbeat": {
			looks: after(beating(0, 20*s, 1), looks(80*s, 82*s, seen{beat: 20*s + 1, by: 1, holder: 1}),
				beating(83*s, 160*s, 1))},
		"both are frozen while the agent starts": {
			looks: after(looks(0, 5*s, seen{beat: 1, by: 1, holder: 2}),
				looks(80*s, 88*s, seen{beat: 1, by: 1, holder: 2}),
				beating(89*s, 160*s, 2))},
		"the agent hangs after the freeze": {
			looks: after(beating(0, 20*s, 1), looks(80*s, 160*s, seen{beat: 20 * s, by: 1, holder: 1})),
			want:  Kill, at: 83 * s},
		"a heartbeat of an earlier boot": {
			looks: looks(0, 60*s, seen{beat: 5000 * s, by: 9, holder: 1}),
			want:  Kill, at: 10 * s},
		"the file of heartbeats is gone for a moment": {
			looks: after(beating(0, 20*s, 1), looks(21*s, 22*s, seen{holder: 1}), beating(23*s, 60*s, 1))},
		"an agent that never sends any": {
			looks: looks(0, 60*s, seen{holder: 1}),
			want:  Kill, at: 10 * s},
	} {
		var m Memory
		action, at := Wait, time.Duration(0)
		for _, l := range c.looks {
			m = m.Look(l.at, Beat{l.beat, Process{1, l.by}}.orNone(),
				Holder{Process{1, l.holder}, l.holder != 0 && !l.other}.orNobody())
			if quiet := m.Judge(false); quiet != Wait {
				t.Errorf("%s: action %d although the journal has no entries", name, quiet)
			}
			if action = m.Judge(true); action != Wait {
				at = l.at
				break
			}
		}
		if action != c.want || at != c.at {
			t.Errorf("%s: action %d at %v, want %d at %v", name, action, at, c.want, c.at)
		}
	}
}

func (b Beat) orNone() Beat {
	if b.By.Start == 0 {
		return Beat{}
	}
	return b
}

func (h Holder) orNobody() Holder {
	if h.Start == 0 {
		return Holder{}
	}
	return h
}

// TestTried: what the kernel refuses is tried again, but not at each look. A heartbeat ends that.
func TestTried(t *testing.T) {
	var m Memory
	var acted []time.Duration
	for _, l := range looks(0, 30*time.Second, seen{}) {
		if m = m.Look(l.at, Beat{}, Holder{}); m.Judge(true) == Restore {
			acted = append(acted, l.at/time.Second)
			m = m.Tried()
		}
	}
	if len(acted) != 3 || acted[0] != 3 || acted[1] != 13 || acted[2] != 23 {
		t.Errorf("tried at %d s", acted)
	}
	m = m.Look(31*time.Second, Beat{At: 20 * time.Second, By: Process{1, 1}}, Holder{})
	if got := m.Judge(true); got != Restore {
		t.Errorf("after an agent has come and gone: action %d", got)
	}
}

// TestPart: who is asked to end stays until the agent that was there has ended and left nothing, or another has taken
// over. An agent that goes on keeps nobody.
func TestPart(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		looks []seen
		left  bool // entries are in the journal, at all times
		tried bool // they were tried, and refused
		want  time.Duration
	}{
		"no agent": {looks: looks(20*s, 60*s, seen{}), want: 20 * s},
		"the agent ends": {looks: append(looks(20*s, 24*s, seen{beat: 20 * s, by: 1, holder: 1}),
			looks(25*s, 60*s, seen{beat: 20 * s, by: 1})...), want: 25 * s},
		"the agent ends, and leaves something": {looks: append(looks(20*s, 24*s, seen{beat: 20 * s, by: 1, holder: 1}),
			looks(25*s, 60*s, seen{beat: 20 * s, by: 1})...), left: true},
		"the kernel refuses what is left": {looks: append(looks(20*s, 24*s, seen{beat: 20 * s, by: 1, holder: 1}),
			looks(25*s, 60*s, seen{beat: 20 * s, by: 1})...), left: true, tried: true, want: 25 * s},
		"the agent hangs": {looks: looks(20*s, 60*s, seen{beat: 20 * s, by: 1, holder: 1}),
			left: true},
		"another one takes over": {looks: append(looks(20*s, 24*s, seen{beat: 20 * s, by: 1, holder: 1}),
			looks(25*s, 60*s, seen{beat: 20 * s, by: 1, holder: 2})...), left: true, want: 25 * s},
		"another one takes over, which cannot be seen": {looks: append(looks(20*s, 20*s, seen{beat: 20 * s, by: 1,
			holder: 1}), unseen(beating(21*s, 60*s, 2))...), left: true, want: 23 * s},
		"the agent is killed late": {looks: append(looks(20*s, 22*s, seen{beat: 20 * s, by: 1, holder: 1}),
			looks(23*s, 60*s, seen{beat: 22*s + s/2, by: 1})...), left: true},
		"the agent goes on": {looks: beating(20*s, 60*s, 1), left: true, want: 23 * s},
	} {
		var m Memory
		for _, l := range beating(10*s, 19*s, 1) {
			m = m.Look(l.at, Beat{l.beat, Process{1, 1}}, Holder{Process{1, 1}, true})
		}
		if name == "no agent" {
			m = m.Look(19*s, Beat{}, Holder{})
		}
		parting, ended := m.Part(19*s), time.Duration(0)
		for _, l := range c.looks {
			m = m.Look(l.at, Beat{l.beat, Process{1, l.by}}.orNone(),
				Holder{Process{1, l.holder}, l.holder != 0}.orNobody())
			if c.tried && l.holder == 0 {
				m = m.Tried()
			}
			if parting.May(m, c.left) {
				ended = l.at
				break
			}
		}
		if ended != c.want {
			t.Errorf("%s: ends at %v, want %v", name, ended, c.want)
		}
	}
}

// TestPartBeforeTheFirstLook: who is asked to end before it has looked does not take the agent that hangs for one that
// has taken over.
func TestPartBeforeTheFirstLook(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		looks []seen
		left  bool
		want  time.Duration
	}{
		"the agent hangs":                 {looks: looks(20*s, 60*s, seen{beat: 20 * s, by: 1, holder: 1}), left: true},
		"the agent goes on":               {looks: beating(20*s, 60*s, 1), left: true, want: 23 * s},
		"one goes on that cannot be seen": {looks: unseen(beating(20*s, 60*s, 1)), left: true, want: 23 * s},
		"no agent":                        {looks: looks(20*s, 60*s, seen{}), want: 20 * s},
	} {
		var m Memory
		parting, ended := m.Part(19*s), time.Duration(0)
		if parting.May(m, true) {
			t.Errorf("%s: something is left, and nobody has looked", name)
		}
		for _, l := range c.looks {
			m = m.Look(l.at, Beat{l.beat, Process{1, l.by}}.orNone(),
				Holder{Process{1, l.holder}, l.holder != 0}.orNobody())
			if parting.May(m, c.left) {
				ended = l.at
				break
			}
		}
		if ended != c.want {
			t.Errorf("%s: ends at %v, want %v", name, ended, c.want)
		}
	}
}

// TestAfter: a lease of another length is looked at as much more often.
func TestAfter(t *testing.T) {
	m := Memory{After: time.Second}
	if m.Every() != 100*time.Millisecond || (Memory{}).Every() != time.Second {
		t.Errorf("every %v, %v", m.Every(), (Memory{}).Every())
	}
	for at := time.Duration(0); at <= 2*time.Second; at += m.Every() {
		m = m.Look(at, Beat{At: 1, By: Process{1, 1}}, Holder{Process: Process{1, 1}, Ours: true})
		// the first look after a second
		if got, want := m.Judge(true) == Kill, at >= 1100*time.Millisecond; got != want {
			t.Errorf("at %v: kill is %v", at, got)
		}
	}
}
