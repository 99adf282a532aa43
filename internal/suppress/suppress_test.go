package suppress

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// press runs a node of 10 CPUs second by second: others use what online says, offline work takes what it wants and may.
type press struct {
	state State
	now   time.Time
	ask   strategy.Suppress
	used  []float64 // of the offline groups, in the second before
	limit []float64 // their owners', in CPUs
	fresh []bool    // made in the second before
	// quotas are those of the last second, by group.
	quotas map[string]time.Duration
}

func newPress(groups int) *press {
	return &press{now: time.Unix(1000, 0), ask: strategy.Suppress{Enable: true, ThresholdPercent: 65, MinPercent: 5},
		used:  make([]float64, groups),
		limit: slices.Repeat([]float64{math.Inf(1)}, groups)}
}

// second takes one: each group wants so much. It returns the room, +Inf where there is no bound.
func (p *press) second(online float64, want ...float64) float64 {
	l := Load{CPUs: 10, Used: online}
	for i, used := range p.used {
		l.Used += used
		own := cpu.Bandwidth{Quota: cpu.Unlimited, Period: 100 * time.Millisecond}
		if !math.IsInf(p.limit[i], 1) {
			own.Quota = time.Duration(p.limit[i] * float64(own.Period))
		}
		if i < len(p.fresh) && p.fresh[i] {
			used, l.Partial = 0, true
		}
		l.Offline = append(l.Offline, Group{ID: workload.ID{Path: string(rune('a' + i))}, Used: used, Limit: own})
	}
	p.now = p.now.Add(time.Second)
	intents := p.state.Decide(p.now, p.ask, l)
	for i := range p.used {
		p.used[i] = min(want[i], p.limit[i])
	}
	p.quotas = map[string]time.Duration{}
	for _, s := range intents {
		d, _ := s.Value.Time()
		p.quotas[s.Path] = d
		i := s.Path[0] - 'a'
		p.used[i] = min(want[i], d.Seconds()/0.1) // it replaces the owner's
	}
	room, bounded := p.state.Room()
	if !bounded {
		return math.Inf(1)
	}
	return room
}

func within(a, b float64) bool { return math.Abs(a-b) < 0.2 || math.IsInf(a, 1) && math.IsInf(b, 1) }

func TestSuppress(t *testing.T) {
	p := newPress(1)
	for i, x := range []struct{ online, want, room float64 }{
		{1, 3, math.Inf(1)}, {1, 3, math.Inf(1)}, // 40 %: nobody is bounded
		{1, 9, math.Inf(1)}, {1, 9, 5.5}, // past the threshold: seen in the next second, at 65 % less what others use
		{4, 9, 2.5},                                        // others want more: at once
		{1, 9, 3.5}, {1, 9, 4.5}, {1, 9, 5.5}, {1, 9, 5.5}, // and back a tenth of the node a second
		{9, 9, 0.5}, {9, 9, 0.5}, // never below the minimum of 5 %
	} {
		if got := p.second(x.online, x.want); !within(got, x.room) {
			t.Errorf("second %d: room %.2f, want %.2f", i, got, x.room)
		}
	}
	for i := range 30 {
		got := p.second(1, 0.1) // it wants little now
		if i > 25 && !math.IsInf(got, 1) {
			t.Errorf("%d s after: still bounded at %.2f", i, got)
		}
	}
}

// Offline groups share evenly what they want, and one that wanted nothing can begin to.
func TestSuppressShares(t *testing.T) {
	p := newPress(2)
	for range 5 {
		p.second(2, 6, 1)
	}
	if a, b := p.used[0], p.used[1]; !within(a, 3.25) || !within(b, 1) {
		t.Errorf("used %.2f and %.2f, want 3.25 and 1", a, b)
	}
	for range 5 {
		p.second(2, 8, 8)
	}
	if a, b := p.used[0], p.used[1]; !within(a, 2.25) || !within(b, 2.25) {
		t.Errorf("used %.2f and %.2f, want the half of 4.5 each", a, b)
	}
}

// TestSuppressOfNewGroups: the room stays as it is in the second in which a group is made, and the group gets a part of
// it. Where groups are made each second, the room falls all the same.
func TestSuppressOfNewGroups(t *testing.T) {
	p := newPress(2)
	for range 5 {
		p.second(1, 9, 3)
	}
	p.fresh = []bool{false, true}
	if room := p.second(1, 9, 3); !within(room, 5.5) || p.quotas["b"] == 0 {
		t.Errorf("room %.2f, want 5.50; quotas %v", room, p.quotas)
	}
	p.fresh = []bool{true, true} // a level above them is made or removed: the groups at its place are new
	p.second(1, 9, 3)
	p.fresh = nil
	p.second(1, 9, 3)
	p.fresh = []bool{true, true}
	if room := p.second(1, 9, 3); len(p.quotas) != 2 {
		t.Errorf("room %.2f, and the quotas are %v", room, p.quotas)
	}
	p.second(6, 9, 3)
	if room := p.second(6, 9, 3); !within(room, 0.5) {
		t.Errorf("room %.2f while groups are made each second, want 0.50", room)
	}
}

// TestSuppressKeepsLimits: who has a limit below its share keeps it, without a quota of ours, and leaves the others the
// rest; where its share falls below the limit it has a quota, and no longer when the room grows again.
func TestSuppressKeepsLimits(t *testing.T) {
	p := newPress(2)
	p.limit[0] = 0.5
	for range 4 {
		p.second(2, 9, 9)
	}
	if diff := cmp.Diff(map[string]time.Duration{"b": 400 * time.Millisecond}, p.quotas); diff != "" {
		t.Errorf("a room of 4.5 CPUs (-want +got):\n%s", diff)
	}
	p.second(9, 9, 9)
	p.second(9, 9, 9)
	if diff := cmp.Diff(map[string]time.Duration{"a": 25 * time.Millisecond, "b": 25 * time.Millisecond},
		p.quotas); diff != "" {
		t.Errorf("the minimum of half a CPU (-want +got):\n%s", diff)
	}
	for range 5 {
		p.second(2, 9, 9)
		if p.used[0] > 0.5 {
			t.Errorf("it gets %.2f CPUs, its owner gave it half of one", p.used[0])
		}
	}
	if diff := cmp.Diff(map[string]time.Duration{"b": 400 * time.Millisecond}, p.quotas); diff != "" {
		t.Errorf("4.5 CPUs again (-want +got):\n%s", diff)
	}
}

func TestSuppressIsOff(t *testing.T) {
	p := newPress(1)
	p.ask.Enable = false
	for range 5 {
		if got := p.second(5, 9); !math.IsInf(got, 1) {
			t.Errorf("off, and bounded at %.2f", got)
		}
	}
	p.ask.Enable = true
	p.second(5, 9)
	p.ask.Enable = false
	if got := p.second(5, 9); !math.IsInf(got, 1) {
		t.Errorf("switched off, and bounded at %.2f", got)
	}
}
