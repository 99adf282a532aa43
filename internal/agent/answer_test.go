package agent

import (
	"context"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// calm is a container with a task that wants nothing yet.
func (w *world) calm(path string, p strategy.Policy) {
	w.t.Helper()
	c := w.container(path, 50*ms, sim.Load{})
	c.Strategy.Policy = p
	w.kernel.SetTasks(path, 2)
	w.alone(c)
}

// TestThrottledOnceIsSeldomRead: a throttle has a group read often for a while only, also where nothing is to be done
// about it and throttles are not ended one by one (before 5.14).
func TestThrottledOnceIsSeldomRead(t *testing.T) {
	for _, p := range []strategy.Policy{strategy.None, strategy.CPUBurstOnly, strategy.Auto} {
		w, _ := subscribed(t, false)
		w.calm("/a", p)
		w.run(time.Second)
		w.kernel.SetLoad("/a", sim.Script(2, sim.Job{Cost: 120 * ms}, sim.Job{Cost: 120 * ms}))
		w.run(10 * time.Second)
		if got := w.status("/a").Totals.Throttled; got == 0 {
			t.Fatalf("%s: it was not throttled", p)
		}
		before := w.agent.reader.Looks
		w.run(time.Minute)
		if looks := w.agent.reader.Looks - before; looks > 40 { // for 3 s, as soon as it is known
			t.Errorf("%s: %d looks at an idle group in a minute", p, looks)
		}
	}
}

// TestQuietGroupsAreSeldomRead, and who asks is told what is true now.
func TestQuietGroupsAreSeldomRead(t *testing.T) {
	w, _ := subscribed(t, true)
	for _, path := range []string{"/a", "/b", "/c"} {
		w.alone(w.container(path, 50*ms, sim.Periodic(100*ms, sim.Fixed(10*ms), 1)))
	}
	w.run(time.Second)
	before := w.agent.reader.Looks
	w.run(36 * time.Second)
	if looks := w.agent.reader.Looks - before; looks > 12 {
		t.Errorf("%d looks at three quiet groups in 36 s", looks)
	}
	if used := w.status("/a").Totals.Usage; used < 3600*ms {
		t.Errorf("status says %v of CPU time used, it was 3.7 s", used)
	}
}

// TestFirstThrottle: a container whose processes came after its first reading is refilled from its first throttle on.
func TestFirstThrottle(t *testing.T) {
	w, _ := subscribed(t, true)
	w.alone(w.container("/a", 50*ms, sim.Load{}))
	w.run(5 * time.Second)
	w.kernel.SetTasks("/a", 1)
	w.kernel.SetLoad("/a", sim.Script(1, sim.Job{Cost: 90 * ms}))
	w.run(time.Second)
	if c := w.status("/a"); c.Totals.Refills != 1 || w.kernel.ThrottledWall("/a") > 5*ms {
		t.Errorf("%d refills, throttled for %v", c.Totals.Refills, w.kernel.ThrottledWall("/a"))
	}
}

// TestOfflineWorkIsRead: what does not count against the share pool has to be known (policy/guard.go), and whether the
// kernel keeps it behind, too.
func TestOfflineWorkIsRead(t *testing.T) {
	w, _ := subscribed(t, true)
	c := w.container("/be", 50*ms, sim.Spin(1))
	c.Class = workload.ClassBE
	w.alone(c)
	w.run(time.Second)
	before := w.agent.reader.Looks
	if err := w.kernel.ForeignWrite("cpu/be/cpu.idle", "1"); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Second)
	if looks := w.agent.reader.Looks - before; looks < 4 || !w.agent.groups[c.ID].Idle {
		t.Errorf("%d looks in 5 s, known to be behind: %v", looks, w.agent.groups[c.ID].Idle)
	}
}

// TestPutOffIsNotForgotten: of two writes in one period the second waits for the next, and not for the next look at a
// quiet group.
func TestPutOffIsNotForgotten(t *testing.T) {
	w, _ := subscribed(t, true)
	w.calm("/a", strategy.Auto)
	w.run(time.Second)
	c := &w.place.pods[0].Containers[0]
	for _, percent := range []int64{50, 100} {
		w.place.pods = slices.Clone(w.place.pods)
		c.Strategy.CPUBurstPercent = percent
		w.run(10 * ms)
	}
	w.want("/a", 50*ms, 25*ms)
	w.run(300 * ms)
	w.want("/a", 50*ms, 50*ms)
}

// TestRefilled also sees that the agent says so.
func TestRefilled(t *testing.T) {
	w, _ := subscribed(t, true)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	w.run(time.Second)
	w.kernel.SetLoad("/a", sim.Periodic(730*ms, sim.Fixed(70*ms), 1))
	w.run(10 * time.Second)
	got, e := w.status("/a").Totals, w.agent.Status().Events
	if got.Refills < 5 || got.WallSaved <= 0 || got.Raises != 0 || e.Refills != got.Refills ||
		e.DelayP50 < 100*time.Microsecond || e.DelayP99 < e.DelayP50 {
		t.Errorf("%+v, %+v", got, e)
	}
	if got.Events == nil || got.Events.Begun != 7 || got.ThrottledWall != 3*ms {
		t.Errorf("the kernel's count is not shown: %+v", got)
	}
	if n := w.agent.Status().Writes.Decisions[string(policy.KindRefill)]; n != got.Refills {
		t.Errorf("%d decisions, %d refills", n, got.Refills)
	}
}

// refills counts those that were tried.
func (w *world) refills() int64 { return w.agent.record.Writes().Decisions[string(policy.KindRefill)] }

// throttled is a throttle of a spinner that began so long ago and was not told.
func (w *world) throttled(path string, ago time.Duration) bandwidth.Throttle {
	w.t.Helper()
	w.kernel.OnThrottle = nil
	w.kernel.SetLoad(path, sim.Spin(1))
	for range 200 {
		if w.kernel.Runtime(path) <= 0 {
			break
		}
		w.kernel.Advance(ms)
	}
	at := w.kernel.Now()
	w.kernel.Advance(ago)
	return bandwidth.Throttle{Inode: w.id(path).Inode, At: at, Bandwidth: w.kernel.Bandwidth(path), Snap: 50 * ms,
		Expires: w.kernel.NextExpiry(path), UseKnown: true, Used: 50 * ms}
}

// TestForeseenAndBegunIsOne: a throttle that was foreseen and has begun in the same batch is answered,
// and counted, once.
func TestForeseenAndBegunIsOne(t *testing.T) {
	w, _ := subscribed(t, true)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	w.run(time.Second)
	begun := w.throttled("/a", ms)
	foreseen := begun
	foreseen.At, foreseen.Ahead = begun.At.Add(-3*ms), true
	w.agent.AnswerThrottles([]bandwidth.Throttle{foreseen, begun})
	if e := w.agent.events(); e.Refills != 1 || e.DelayP99 != ms || w.refills() != 1 {
		t.Errorf("%d refills, %+v", w.refills(), e)
	}
	begun.At = begun.At.Add(ms / 2) // on another CPU
	w.agent.AnswerThrottles([]bandwidth.Throttle{begun})
	if e := w.agent.events(); e.Refills != 1 || w.refills() != 1 {
		t.Errorf("answered again: %d refills, %+v", w.refills(), e)
	}
	w.kernel.SetLoad("/a", sim.Load{})
	w.kernel.Advance(200 * ms)
	foreseen.At, foreseen.Expires = w.kernel.Now(), w.kernel.NextExpiry("/a") // another period's
	w.agent.AnswerThrottles([]bandwidth.Throttle{foreseen})
	if e := w.agent.events(); w.refills() != 2 || e.Refills != 1 || e.DelayP50 != e.DelayP99 {
		t.Errorf("a refill ahead of a throttle has no delay, and no effect yet: %d refills, %+v", w.refills(), e)
	}
	w.run(200 * ms)
	if e := w.agent.events(); e.Refills != 1 || e.Unneeded != 1 || e.Ineffective != 0 {
		t.Errorf("nothing ran: %+v", e)
	}
}

// TestForeseenWaits: of a group that has come to its cap of late, a refill ahead of a throttle is made when it is due,
// and not at all when the throttle has begun before, and been ended.
func TestForeseenWaits(t *testing.T) {
	w, _ := subscribed(t, true)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	w.calm("/b", strategy.CFSQuotaBurstOnly)
	w.run(time.Second)
	foreseen := func(path string, within time.Duration) bandwidth.Throttle {
		now := w.kernel.Now()
		return bandwidth.Throttle{Inode: w.id(path).Inode, At: now, Bandwidth: w.kernel.Bandwidth(path), Snap: 50 * ms,
			Expires: now.Add(50 * ms), Ahead: true, Dry: now.Add(within)}
	}
	for _, path := range []string{"/a", "/b"} {
		capped := foreseen(path, 0)
		capped.Ahead, capped.UseKnown, capped.Used = false, true, 200*ms
		w.agent.AnswerThrottles([]bandwidth.Throttle{capped})
	}
	a, b := foreseen("/a", 6*ms), foreseen("/b", 5*ms)
	want := func(due time.Time, refills int64, throttles ...bandwidth.Throttle) {
		t.Helper()
		if w.agent.AnswerThrottles(throttles); w.refills() != refills {
			t.Errorf("%d refills, want %d", w.refills(), refills)
		}
		w.agent.subscription.unsure = nil // what they did is another matter
		if next := w.agent.subscription.next(); !next.Equal(due) {
			t.Errorf("the next one is due at %v; want %v", next, due)
		}
	}
	want(policy.Due(a), 0, a)
	want(policy.Due(b), 0, b)
	w.kernel.Advance(policy.Due(b).Sub(w.kernel.Now()) - time.Microsecond)
	want(policy.Due(b), 0)
	begun := foreseen("/b", 0)
	begun.Ahead = false
	want(policy.Due(a), 1, begun)
	w.kernel.Advance(2 * ms)
	want(time.Time{}, 2)
	late := foreseen("/a", ms)
	want(time.Time{}, 3, late)
	w.agent.subscription.active = false
	want(time.Time{}, 3, foreseen("/a", 6*ms))
}

// TestNothingIsRefilledWhileHeld, or decided, and it is not even heard of; but the books are kept.
func TestNothingIsRefilledWhileHeld(t *testing.T) {
	w, e := subscribed(t, true)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	w.run(time.Second)
	if _, err := w.agent.Hold(context.Background(), false, "test"); err != nil {
		t.Fatal(err)
	}
	w.kernel.SetLoad("/a", sim.Periodic(730*ms, sim.Fixed(70*ms), 1))
	w.run(10 * time.Second)
	s := w.agent.Status()
	if n := s.Writes.Decisions[string(policy.KindRefill)]; n != 0 || len(s.Writes.Results) != 0 ||
		s.Containers[0].Totals.Throttled < 5 {
		t.Errorf("%d decisions, results %v, %+v", n, s.Writes.Results, s.Containers[0].Totals)
	}
	told, tell := 0, w.kernel.OnThrottle
	w.kernel.OnThrottle = func(x bandwidth.Throttle) {
		if !e.suppressed[x.Inode] {
			told++
		}
		tell(x)
	}
	w.kernel.SetLoad("/a", sim.Spin(1))
	w.run(time.Second)
	if told > 2 {
		t.Errorf("told of %d throttles in ten periods", told)
	}
	w.kernel.SetLoad("/a", sim.Load{}) // else it would be raised
	w.run(5 * time.Second)
	w.kernel.SetLoad("/a", sim.Periodic(730*ms, sim.Fixed(70*ms), 1))
	if err := w.agent.Resume(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.run(10 * time.Second)
	if got := w.status("/a").Totals; got.Refills == 0 ||
		got.Refills != w.agent.Status().Writes.Decisions[string(policy.KindRefill)] {
		t.Errorf("after it: %+v", got)
	}
}

// TestRaisedWhereNothingCanBeRewritten: then a throttle is answered by a raise, as soon as the loop turns.
func TestRaisedWhereNothingCanBeRewritten(t *testing.T) {
	w, _ := subscribed(t, false)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	w.run(time.Second)
	w.kernel.SetLoad("/a", sim.Spin(2))
	for range 500 {
		select {
		case <-w.agent.poke:
			w.agent.Tick(w.kernel.Now())
			w.wantRaised("/a", 50*ms)
			return
		default:
			w.kernel.Advance(ms)
		}
	}
	t.Error("nobody asked for a turn")
}

// TestResizeIsSeenInTheEvent: the kernel tells the limit, which nobody had told of.
func TestResizeIsSeenInTheEvent(t *testing.T) {
	w, _ := subscribed(t, true)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	w.run(time.Second)
	w.limit("/a", 60*ms)
	w.kernel.SetLoad("/a", sim.Spin(1))
	w.run(150 * ms)
	if got := w.agent.status(nil, w.kernel.Now()).Containers[0].Limit; got != 60*ms {
		t.Errorf("limit %v after a throttle at 60ms", got)
	}
}

// TestFollowingPodIsSeldomRead: nothing is decided on what a pod uses whose quota only follows its container's.
func TestFollowingPodIsSeldomRead(t *testing.T) {
	w, _ := subscribed(t, true)
	pod := workload.Pod{ID: w.group("/pod", 50*ms), Name: "p",
		Containers: []workload.Container{w.container("/pod/a", 50*ms, sim.Spin(2))}}
	w.place.pods = append(w.place.pods, pod)
	w.run(20 * time.Second)
	if !w.status("/pod").Quota.Changed || !w.status("/pod/a").Quota.Changed {
		t.Fatalf("not raised: %+v", w.status("/pod").Quota)
	}
	count := func(id workload.ID) int {
		looks := 0
		var last time.Time
		for end := w.kernel.Now().Add(10 * time.Second); w.kernel.Now().Before(end); w.run(45 * ms) {
			if at := w.agent.groups[id].Reading.At; at.After(last) {
				looks, last = looks+1, at
			}
		}
		return looks
	}
	if a, p := count(pod.Containers[0].ID), count(pod.ID); p > 15 || a < 2*p {
		t.Errorf("in 10 s the container was read %d times, its pod %d times", a, p)
	}
}

// TestRereads: limit files are read again when somebody writes them,
// and else seldom where the kernel tells of throttles.
func TestRereads(t *testing.T) {
	w, _ := subscribed(t, true)
	w.hog("/a")
	w.run(20 * time.Second)
	rereads := func(d time.Duration) int {
		n := 0
		var last time.Time
		for end := w.kernel.Now().Add(d); w.kernel.Now().Before(end); w.run(45 * ms) {
			if at := w.agent.groups[w.id("/a")].DiskAt; at.After(last) {
				n, last = n+1, at
			}
		}
		return n
	}
	if n := rereads(30 * time.Second); n < 2 || n > 5 || !w.status("/a").Quota.Changed {
		t.Errorf("%d rereads of a raised group in 30 s", n)
	}
	w.agent.subscription.active = false
	if n := rereads(30 * time.Second); n < 12 {
		t.Errorf("%d rereads of a raised group in 30 s, polling", n)
	}
}

// TestRefillWaitsForNoDisk: a refill does not wait for the disk, also where its group is gone by then or another
// program has written the file. The turn that finds that tells the journal.
func TestRefillWaitsForNoDisk(t *testing.T) {
	for name, happens := range map[string]func(*world){
		"gone":    func(w *world) { w.kernel.RemoveGroup("/a") },
		"written": func(w *world) { w.file("/a", "cpu.cfs_burst_us", "20000") },
	} {
		t.Run(name, func(t *testing.T) {
			w, disk, j := onDisk(t)
			w.calm("/a", strategy.Auto)
			w.run(960 * ms)
			w.want("/a", 50*ms, 50*ms)
			throttle := w.throttled("/a", 100*time.Microsecond)
			w.calm("/late", strategy.Auto)
			w.place.pods = slices.Clone(w.place.pods)
			happened := false
			disk.syncs = func() {
				disk.syncs = nil
				w.kernel.Fault = func(op, name string, _ []byte) error {
					if op == "read" && name == "cpu/a/cpu.cfs_burst_us" {
						w.kernel.Fault, happened = nil, true
						happens(w)
					}
					return nil
				}
				w.answerNow(throttle)
			}
			w.agent.Tick(w.kernel.Now())
			if !happened || w.refills() != 1 {
				t.Errorf("%d refills, and the file was read: %v", w.refills(), happened)
			}
			w.place.touched = []string{"/a"}
			w.run(2 * time.Minute)
			for _, e := range j.Entries() {
				if e.Path == "/a" && e.Knob == plan.Burst {
					t.Errorf("in the journal is still %+v", e)
				}
			}
		})
	}
}
