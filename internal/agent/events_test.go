package agent

import (
	"errors"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/observe"
	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// fakeEvents are those that a test sends.
type fakeEvents struct {
	watched    []uint64
	suppressed map[uint64]bool
	limits     map[uint64]time.Duration
	totals     map[uint64]report.Throttles
	uses       map[uint64][]int64
	told       chan []bandwidth.Throttle
	failure    error // of Read, once told is closed
	refuses    error // of Watch
	room       int   // for groups that are watched; 0: for all
	stubborn   error // of SuppressEvents
	lost       int64
	unplaced   int64
}

func (e *fakeEvents) Watch(groups []uint64) error {
	e.watched = slices.Clone(groups)
	maps.DeleteFunc(e.suppressed, func(group uint64, _ bool) bool { return !slices.Contains(groups, group) })
	if e.room > 0 && len(groups) > e.room {
		return errors.New("no room")
	}
	return e.refuses
}

func (e *fakeEvents) SuppressEvents(group uint64, suppress bool) error {
	if e.stubborn == nil {
		e.suppressed[group] = suppress
	}
	return e.stubborn
}

func (e *fakeEvents) Limit(group uint64, quota time.Duration) error {
	e.limits[group] = quota
	return nil
}

func (e *fakeEvents) Read(time.Time) ([]bandwidth.Throttle, error) {
	heard, ok := <-e.told
	if !ok {
		return nil, e.failure
	}
	return heard, nil
}

func (e *fakeEvents) Totals(group uint64) (report.Throttles, bool) {
	if t, ok := e.totals[group]; ok {
		return t, true
	}
	return report.Throttles{Begun: 7, Wall: 3 * ms}, slices.Contains(e.watched, group)
}

func (e *fakeEvents) Uses(group uint64) []int64 { return e.uses[group] }

func (e *fakeEvents) Unplaced() int64            { return e.unplaced }
func (e *fakeEvents) Lost() int64                { return e.lost }
func (e *fakeEvents) Priority() (string, string) { return "plain", "" }
func (e *fakeEvents) Close() error               { close(e.told); return nil }

// subscribed is a world whose agent has throttle events.
func subscribed(t testing.TB, refill bool) (*world, *fakeEvents) {
	w := newWorld(t)
	return w, w.subscribes(refill)
}

func (w *world) subscribes(refill bool) *fakeEvents {
	e := &fakeEvents{suppressed: map[uint64]bool{}, limits: map[uint64]time.Duration{},
		told: make(chan []bandwidth.Throttle), failure: io.EOF}
	w.agent.Events, w.agent.subscription.active, w.agent.Rules.Refill = e, true, refill
	w.kernel.OnThrottle = func(x bandwidth.Throttle) {
		if e.suppressed[x.Inode] || !slices.Contains(e.watched, x.Inode) {
			return
		}
		w.kernel.At(w.kernel.Now().Add(100*time.Microsecond), func() {
			w.agent.AnswerThrottles([]bandwidth.Throttle{{Inode: x.Inode, At: x.At, Bandwidth: x.Bandwidth,
				Snap: x.Snap, Expires: x.Expires}})
		})
	}
	return e
}

// TestGlanceReadsSeldom: who asks each second does not have all quiet groups read each second, as a status does.
func TestGlanceReadsSeldom(t *testing.T) {
	w, _ := subscribed(t, true)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	w.run(2 * time.Second)
	glance := func() report.Status { return w.agent.Glance(nil) }
	looks := func(ask func() report.Status, seconds int) int64 {
		before := w.agent.reader.Looks
		for range seconds {
			w.run(time.Second)
			if s := ask(); len(s.Containers) != 1 || !s.Now.Equal(w.kernel.Now()) {
				t.Fatalf("%+v", s)
			}
		}
		return w.agent.reader.Looks - before
	}
	if n := looks(glance, 20); n != 0 {
		t.Errorf("%d readings of a group with a limit for 20 glances", n)
	}
	w.file("/a", "cpu.cfs_quota_us", "-1")
	w.run(2 * time.Second)
	if n := looks(glance, 20); n == 0 || n > 5 {
		t.Errorf("%d readings of a group without a limit for 20 glances", n)
	}
	if n := looks(w.agent.Status, 5); n < 5 {
		t.Errorf("%d readings for 5 statuses", n)
	}
}

// TestSubscribedAgain: when the kernel refuses to tell of all groups they are polled at once, and it is asked again
// when there are others.
func TestSubscribedAgain(t *testing.T) {
	w, e := subscribed(t, true)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	w.run(2 * time.Second)
	before := w.agent.reader.Looks
	w.run(time.Second)
	if n := w.agent.reader.Looks - before; n != 0 {
		t.Fatalf("%d looks in a quiet second: it proves nothing", n)
	}
	e.refuses = errors.New("no room")
	w.calm("/b", strategy.CFSQuotaBurstOnly)
	w.run(ms)
	if g := w.agent.groups[w.id("/a")]; w.agent.subscription.active || w.kernel.Now().Sub(g.Reading.At) > 10*ms {
		t.Errorf("subscribed %v, looked at %v ago", w.agent.subscription.active, w.kernel.Now().Sub(g.Reading.At))
	}
	e.refuses = nil
	w.place.pods = slices.Clone(w.place.pods[:1])
	w.run(ms)
	if got := w.agent.Status().Events; !got.Subscribed || got.Why != "" {
		t.Errorf("after one container has left: %+v", got)
	}
	e.failure = errors.New("the ring broke")
	w.agent.listen()()
	w.place.pods = slices.Clone(w.place.pods)
	w.run(ms)
	if got := w.agent.Status().Events; got.Subscribed || got.Why != "the ring broke" {
		t.Errorf("nobody reads any more: %+v", got)
	}
}

// TestEventBetweenTurns: an event may come when the groups that are subscribed to are about to change, or was refused
// and has changed since.
func TestEventBetweenTurns(t *testing.T) {
	for name, c := range map[string]struct {
		between func(*world, *fakeEvents)
		refills int64
	}{
		"a load line is set": {func(w *world, _ *fakeEvents) {
			s := w.agent.Strategy
			s.LoadLinePercent = 5
			w.agent.Configure(s, nil)
		}, 1},
		"the kernel hears of no more groups": {func(w *world, e *fakeEvents) {
			e.refuses = errors.New("no room")
			w.place.pods = slices.Clone(w.place.pods[1:])
			w.run(time.Second)
			w.place.pods = nil
			w.run(time.Second)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, e := subscribed(t, true)
			w.calm("/b", strategy.CFSQuotaBurstOnly)
			w.calm("/a", strategy.CFSQuotaBurstOnly)
			w.run(time.Second)
			c.between(w, e)
			now := w.kernel.Now()
			w.agent.AnswerThrottles([]bandwidth.Throttle{{Inode: w.id("/a").Inode, At: now,
				Bandwidth: w.kernel.Bandwidth("/a"), Snap: 50 * ms, Expires: now.Add(50 * ms)}})
			if got := w.refills(); got != c.refills {
				t.Errorf("%d refills, want %d", got, c.refills)
			}
		})
	}
}

// TestSuppressedEvents: without the kernel's word the agent polls, and says why.
func TestSuppressedEvents(t *testing.T) {
	for name, end := range map[string]func(*world, *fakeEvents){
		"no more events": func(w *world, e *fakeEvents) {
			e.failure = errors.New("the ring broke")
			stop := w.agent.listen()
			stop()
		},
		"too many groups": func(w *world, e *fakeEvents) {
			e.refuses = errors.New("the ring broke")
			w.alone(w.container("/b", 50*ms, sim.Load{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, e := subscribed(t, true)
			w.calm("/a", strategy.Auto)
			w.run(time.Second)
			if got := w.agent.Status().Events; !got.Subscribed || got.Priority != "plain" {
				t.Errorf("before: %+v", got)
			}
			end(w, e)
			w.kernel.SetLoad("/a", sim.Spin(2))
			w.run(time.Second)
			if got := w.agent.Status().Events; got.Subscribed || got.Why != "the ring broke" || got.Priority != "" {
				t.Errorf("%+v", got)
			}
			w.wantRaised("/a", 50*ms)
		})
	}
}

// TestLostThrottlesCount: demand that lasts is raised for also where all that is told of it is that something was lost.
func TestLostThrottlesCount(t *testing.T) {
	w, e := subscribed(t, true)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	w.kernel.OnThrottle = func(bandwidth.Throttle) { e.lost++ }
	w.run(time.Second)
	w.kernel.SetLoad("/a", sim.Spin(2))
	w.run(3 * time.Second)
	w.wantRaised("/a", 50*ms)
}

// TestLimitsOfNewcomers: the uses of a group that is heard of only now are counted by its limit, too.
func TestLimitsOfNewcomers(t *testing.T) {
	w, e := subscribed(t, true)
	passive := w.container("/a", 50*ms, sim.Load{})
	passive.Strategy.Policy = strategy.None
	w.alone(passive)
	w.run(time.Second)
	if len(e.watched)+len(e.limits) > 0 {
		t.Fatalf("watched %v, limits %v: it proves nothing", e.watched, e.limits)
	}
	s := w.agent.Strategy
	s.LoadLinePercent = 99.9
	w.agent.Configure(s, nil)
	w.run(time.Second)
	if got := e.limits[passive.Inode]; got != 50*ms {
		t.Errorf("uses are counted by %v", got)
	}
	clear(e.limits)
	w.calm("/b", strategy.Auto)
	w.run(time.Second)
	if len(e.limits) != 1 {
		t.Errorf("told of limits that are known: %v", e.limits)
	}
}

// TestEventsAfterARefusal: a group without events when the kernel refused to tell of all
// groups is heard of again after it.
func TestEventsAfterARefusal(t *testing.T) {
	w, e := subscribed(t, true)
	w.hog("/a")
	w.run(5 * time.Second)
	if !e.suppressed[w.id("/a").Inode] {
		t.Fatal("its events are not suppressed: this proves nothing")
	}
	w.kernel.SetLoad("/a", sim.Load{})
	for _, e.refuses = range []error{errors.New("no room"), nil} {
		w.place.pods = slices.Clone(w.place.pods)
		w.run(5 * time.Second)
	}
	if e.suppressed[w.id("/a").Inode] {
		t.Error("its next throttle will send no event")
	}
}

// TestWhoseEventsAreSuppressed: only those of a group that is subscribed to, which the kernel forgets with the group;
// and it is tried again.
func TestWhoseEventsAreSuppressed(t *testing.T) {
	w, e := subscribed(t, true)
	passive := w.container("/a", 50*ms, sim.Spin(2))
	passive.Strategy.Policy = strategy.None
	w.alone(passive)
	w.run(40 * time.Second) // it is polled for, and found to be throttled
	if len(e.suppressed) > 0 {
		t.Errorf("suppressed, and not watched: %v", e.suppressed)
	}
	if got := w.agent.reader.Interval(w.agent.groups[passive.ID].Group); got != observe.CappedEvery {
		t.Errorf("a throttled group that nothing is done for is looked at every %v", got)
	}
	e.stubborn = errors.New("no room")
	line := func(percent float64) {
		s := w.agent.Strategy
		s.LoadLinePercent = percent
		w.agent.Configure(s, nil)
		w.run(time.Second)
	}
	line(99.9)
	e.stubborn = nil
	w.run(time.Second)
	if !e.suppressed[passive.Inode] {
		t.Error("not suppressed when that can be done again")
	}
	line(0)
	line(99.9)
	if !e.suppressed[passive.Inode] {
		t.Error("not suppressed when it is watched again")
	}
}

// TestLossIsMadeUpFor: when throttles were lost, all groups are looked at.
func TestLossIsMadeUpFor(t *testing.T) {
	w, e := subscribed(t, true)
	w.alone(w.container("/a", 50*ms, sim.Load{}))
	w.alone(w.container("/b", 50*ms, sim.Load{}))
	w.run(2 * time.Second)
	before := w.agent.reader.Looks
	w.run(2 * time.Second)
	if n := w.agent.reader.Looks - before; n != 0 {
		t.Fatalf("%d looks in quiet seconds: it proves nothing", n)
	}
	e.lost = 3
	w.run(time.Second + ms)
	if n := w.agent.reader.Looks - before; n < 2 || w.agent.Status().Events.Lost != 3 {
		t.Errorf("%d looks after a loss, %+v", n, w.agent.Status().Events)
	}
}

// TestNoRoomForCPUsIsAProblem: what is not counted of some groups is said.
func TestNoRoomForCPUsIsAProblem(t *testing.T) {
	w, e := subscribed(t, true)
	said := func() bool { return slices.Contains(w.agent.Status().Problems, report.ProblemUnplaced) }
	if said() {
		t.Error("a problem without one")
	}
	if e.unplaced = 7; !said() {
		t.Errorf("problems %q", w.agent.Status().Problems)
	}
}

// TestHopelessSendsNoEvents: a group at its cap sends none, until it wants less.
func TestHopelessSendsNoEvents(t *testing.T) {
	w, e := subscribed(t, true)
	w.hog("/a")
	inode := w.id("/a").Inode
	w.run(5 * time.Second)
	w.wantRaised("/a", 50*ms)
	if !e.suppressed[inode] {
		t.Error("the hog sends events in every period")
	}
	w.kernel.SetLoad("/a", sim.Load{})
	w.run(5 * time.Second)
	if e.suppressed[inode] {
		t.Error("its next throttle will send no event")
	}
}

// TestWatchesWhatMatters: all groups of pods that anything is to be done for, and no others.
func TestWatchesWhatMatters(t *testing.T) {
	w, e := subscribed(t, true)
	pod := workload.Pod{ID: w.group("/pod", 100*ms), Name: "p", Containers: []workload.Container{
		w.container("/pod/a", 50*ms, sim.Load{}), w.container("/pod/b", 50*ms, sim.Load{})}}
	pod.Containers[1].Strategy.Policy = strategy.None // the pod is one all the same
	passive := w.container("/c", 50*ms, sim.Load{})
	passive.Strategy.Policy = strategy.None
	w.place.pods = append(w.place.pods, pod)
	w.alone(passive)
	w.run(ms)
	want := []uint64{pod.Inode, pod.Containers[0].Inode, pod.Containers[1].Inode}
	if !slices.Equal(e.watched, want) {
		t.Errorf("watches %v, want %v", e.watched, want)
	}
	looked := func(on bool, want []uint64) {
		t.Helper()
		w.agent.WatchAll(on)
		w.run(ms)
		if !slices.Equal(e.watched, want) || !w.agent.subscription.active {
			t.Errorf("somebody looks: %v, watches %v, want %v; subscribed %v", on, e.watched, want,
				w.agent.subscription.active)
		}
	}
	all := append(slices.Clone(want), passive.Inode)
	looked(true, all)
	if w.status("/c").Totals.Events == nil || w.status("/c").Quota.Changed {
		t.Errorf("%+v", w.status("/c"))
	}
	looked(false, want)
	e.room = 3
	looked(true, want)
	e.room = 0
	looked(false, want)
	looked(true, all)
}

// TestLookedAtGroupsAreQuiet: a group that no policy changes, and that is throttled in each period while somebody
// looks, costs one event, and nothing is written.
func TestLookedAtGroupsAreQuiet(t *testing.T) {
	w, e := subscribed(t, true)
	passive := w.container("/a", 50*ms, sim.Spin(2))
	passive.Strategy.Policy = strategy.None
	w.alone(passive)
	events := 0
	heard := w.kernel.OnThrottle
	w.kernel.OnThrottle = func(x bandwidth.Throttle) {
		if !e.suppressed[x.Inode] && slices.Contains(e.watched, x.Inode) {
			events++
		}
		heard(x)
	}
	w.agent.WatchAll(true)
	w.run(5 * time.Second)
	if got := w.kernel.Bandwidth("/a"); events == 0 || events > 2 || got.Quota != 50*ms || got.Burst != 0 {
		t.Errorf("%d events, %+v", events, got)
	}
}
