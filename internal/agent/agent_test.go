package agent

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

func TestStatusTellsRequestedAndInForce(t *testing.T) {
	w := newWorld(t)
	c := w.container("/lab/a", 50*ms, sim.Periodic(time.Second, sim.Fixed(10*ms), 1))
	c.Name, c.Request, c.Declared = "web", 0.25, &workload.Declared{Source: "a test"}
	c.Declared.Bandwidth.Quota, c.Declared.Bandwidth.Period = 25*ms, 50*ms
	w.alone(c)
	begin := w.kernel.Now()
	w.run(2 * time.Second)
	got := w.status("/lab/a")
	want := report.Container{Cgroup: "/lab/a", Name: "web", Runtime: "cgroup", Level: "container", Strategy: c.Strategy,
		Limit:  50 * ms,
		Period: 100 * ms, LimitFrom: "a test", Request: 0.25, Why: "not throttled", Since: begin,
		Quota: report.Knob{Original: 50 * ms, Requested: 50 * ms, InForce: 50 * ms},
		Burst: report.Knob{Original: 0, Requested: 500 * ms, InForce: 50 * ms, Changed: true, Clamped: true,
			Since: &begin}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(report.Container{}, "Totals")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.Totals.Usage < 10*ms || got.Totals.Usage > 20*ms || got.Totals.Periods == 0 || got.Totals.Throttled != 0 ||
		got.Totals.Raises != 0 {
		t.Errorf("totals %+v", got.Totals)
	}
}

func TestStatusOfARaise(t *testing.T) {
	w := raised(t)
	s, c := w.agent.Status(), w.status("/lab/a")
	if !c.Quota.Changed || c.Quota.Since == nil || c.Quota.InForce != w.kernel.Bandwidth("/lab/a").Quota ||
		c.Quota.Original != 50*ms ||
		c.Totals.Raises == 0 || c.Totals.Raised == 0 || c.Totals.Throttled == 0 || c.Totals.AboveLimit == 0 ||
		!strings.Contains(c.Why, "demand") {
		t.Errorf("%+v", c)
	}
	since := *c.Quota.Since
	w.run(2 * time.Second)
	if again := w.status("/lab/a").Quota.Since; again == nil || !again.Equal(since) {
		t.Errorf("raised since %v, and later since %v", since, again)
	}
	if s.Mode != report.Active || s.Version != "1.0" || s.Kernel != "sim" || s.Cgroup != "v1" || !s.ConfigOK ||
		s.Node.CPUs != 4 ||
		s.Node.State != "idle" || s.Node.Granted <= 0 || s.LastTurn.IsZero() || s.Self.Rescans != 3 ||
		s.Self.EventsLost != 1 ||
		s.Self.Looks == 0 || s.Self.Goroutines == 0 || s.Self.Turns == 0 ||
		s.Writes.Results[plan.Quota][plan.Applied] == 0 || s.Writes.Decisions["raise"] == 0 {
		t.Errorf("%+v", s)
	}
	w.kernel.SetLoad("/lab/a", sim.Load{})
	w.run(6 * time.Second)
	if c := w.status("/lab/a"); c.Quota.Changed || c.Quota.Since != nil {
		t.Errorf("given back, but %+v", c.Quota)
	}
}

// TestVanishes: a group that ends in the middle of its raise is a normal outcome, also while discovery still names it.
func TestVanishes(t *testing.T) {
	w := raised(t)
	w.hog("/lab/b")
	w.run(3 * time.Second)
	w.kernel.RemoveGroup("/lab/a")
	w.run(time.Second)
	w.wantProblem("")
	if n := len(w.agent.Status().Containers); n != 1 {
		t.Errorf("%d containers are left, want 1", n)
	}
	w.place.pods = w.place.pods[1:]
	w.run(time.Second)
	w.wantRaised("/lab/b", 50*ms)
}

// TestVanishesAtTheWrite: the group ends between the decision and the write.
func TestVanishesAtTheWrite(t *testing.T) {
	w := newWorld(t)
	w.hog("/lab/a")
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if op == "write" && strings.HasSuffix(name, "cpu.cfs_burst_us") {
			w.kernel.Fault = nil
			w.kernel.RemoveGroup("/lab/a")
		}
		return nil
	}
	w.run(time.Second)
	if w.kernel.Fault != nil {
		t.Fatal("nothing was written: the scenario proves nothing")
	}
	w.wantProblem("")
	if got := w.agent.Status().Writes.Results[plan.Burst][plan.Gone]; got != 1 {
		t.Errorf("%d writes met a group that was gone, want 1", got)
	}
}

// TestRecreated: a group of the same name is another one: what was known of the first does not hold for it.
func TestRecreated(t *testing.T) {
	w := raised(t)
	first := w.id("/lab/a")
	w.kernel.RemoveGroup("/lab/a")
	w.place.pods = nil
	begin := w.kernel.Now()
	w.alone(w.container("/lab/a", 30*ms, sim.Load{}))
	if w.id("/lab/a") == first {
		t.Fatal("the same inode: the scenario proves nothing")
	}
	w.kernel.SetTasks("/lab/a", 1)
	w.run(time.Second)
	w.want("/lab/a", 30*ms, 30*ms)
	c := w.status("/lab/a")
	if c.Limit != 30*ms || c.Quota.Changed || c.Since.Before(begin) || c.Totals.Raises != 0 {
		t.Errorf("%+v", c)
	}
	w.wantProblem("")
}

// TestNothingIsWrittenBeforeATask: a group is its owner's until it holds a task.
func TestNothingIsWrittenBeforeATask(t *testing.T) {
	w := newWorld(t)
	w.alone(w.container("/lab/a", 50*ms, sim.Load{}))
	w.run(5 * time.Second)
	if n := w.ours(); n != 0 {
		t.Fatalf("%d writes to an empty group", n)
	}
	w.kernel.SetTasks("/lab/a", 1)
	w.place.touched = []string{"/lab/a"}
	w.agent.Tick(w.kernel.Now())
	w.want("/lab/a", 50*ms, 50*ms)
}

// TestNoLongerLookedAfter: what leaves the configuration is put back, and stays as it is.
func TestNoLongerLookedAfter(t *testing.T) {
	w := raised(t)
	w.place.pods = nil
	w.agent.Tick(w.kernel.Now())
	w.want("/lab/a", 50*ms, 0)
	written := w.ours()
	w.run(3 * time.Second)
	if w.ours() != written || len(w.agent.Status().Containers) != 0 {
		t.Errorf("%d further writes, %d containers", w.ours()-written, len(w.agent.Status().Containers))
	}
}

// TestUnreadableGroup: a group that cannot be read for a while, as when no file can be opened, is said. What is known
// of it stands: its raised quota is not taken for its limit after that.
func TestUnreadableGroup(t *testing.T) {
	for _, file := range []string{"lab/a/cpu.stat", ""} {
		w := raised(t)
		w.kernel.Fault = func(_, name string, _ []byte) error {
			if strings.HasPrefix(name, "cpu/lab/a/") && strings.HasSuffix(name, file) {
				return syscall.ENFILE
			}
			return nil
		}
		turns := w.agent.Status().Self.Turns
		w.run(5 * time.Second)
		w.wantProblem("/lab/a: ")
		if n := w.agent.Status().Self.Turns - turns; n > 120 {
			t.Errorf("%d turns in 5 s", n)
		}
		w.kernel.Fault = nil
		w.run(5 * time.Second)
		w.wantProblem("")
		w.wantRaised("/lab/a", 50*ms)
		if limit := w.status("/lab/a").Limit; limit != 50*ms {
			t.Errorf("the limit is %v, want 50ms", limit)
		}
	}
}

// TestRaiseThatIsNotReadBack: a value of ours that cannot be read after its write is not taken for the owner's limit.
func TestRaiseThatIsNotReadBack(t *testing.T) {
	for _, declared := range []*workload.Declared{nil,
		{Source: "a test", Bandwidth: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}}} {
		for _, reads := range []int{1, 3} { // that fail: the read-back, and those of the next turns
			w := newWorld(t)
			w.hog("/hog")
			w.place.pods[0].Containers[0].Declared = declared
			left := map[string]int{} // reads that are to fail, of the files that were written
			w.kernel.Fault = func(op, name string, _ []byte) error {
				n, written := left[name]
				switch {
				case op == "write" && !written:
					left[name] = reads
				case op == "read" && n > 0:
					left[name]--
					return syscall.ENFILE
				}
				return nil
			}
			w.run(5 * time.Second)
			w.wantRaised("/hog", 50*ms)
			if limit := w.status("/hog").Limit; limit != 50*ms {
				t.Errorf("%d reads fail, declared %v: the limit is %v", reads, declared != nil, limit)
			}
			w.wantProblem("")
			if err := w.agent.stop(); err != nil {
				t.Fatal(err)
			}
			w.want("/hog", 50*ms, 0)
		}
	}
}

// TestUnreadableFromTheStart: what could never be read is said, and gets nothing.
func TestUnreadableFromTheStart(t *testing.T) {
	w := newWorld(t)
	w.hog("/lab/a")
	w.kernel.Fault = func(_, name string, _ []byte) error {
		if strings.HasSuffix(name, "cpu.cfs_quota_us") {
			return syscall.ENFILE
		}
		return nil
	}
	w.run(3 * time.Second)
	w.wantProblem("/lab/a: ")
	w.kernel.Fault = nil
	w.want("/lab/a", 50*ms, 0)
	w.run(3 * time.Second)
	w.wantProblem("")
	w.wantRaised("/lab/a", 50*ms)
}

// TestDiscoveryFails: the last snapshot stays in force, and the failure and its end are said once each.
func TestDiscoveryFails(t *testing.T) {
	w := raised(t)
	var log strings.Builder
	w.agent.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.place.err = errors.New("too many open files")
	w.run(time.Second)
	w.wantProblem("too many open files")
	w.wantRaised("/lab/a", 50*ms)
	w.place.err = nil
	w.run(time.Second)
	w.wantProblem("")
	fails, works := strings.Count(log.String(), "level=WARN msg=\"discovery fails"), strings.Count(log.String(),
		"level=INFO msg=\"discovery works again\"")
	if fails != 1 || works != 1 || strings.Contains(log.String(), "<nil>") {
		t.Errorf("the log:\n%s", log.String())
	}
}

func TestConfigureKeepsTheLastGood(t *testing.T) {
	w := raised(t)
	threshold := func() float64 {
		w.agent.Tick(w.kernel.Now())
		return w.agent.Status().Node.Threshold
	}
	w.agent.Configure(strategy.Node{Strategy: strategy.Strategy{SharePoolThresholdPercent: 75}}, nil)
	if got := threshold(); got != 3 {
		t.Errorf("threshold %v CPUs, want 3", got)
	}
	w.agent.Configure(strategy.Node{}, errors.New("plimsoll.yaml:3: bad\nplimsoll.yaml:5: worse"))
	if s := w.agent.Status(); s.ConfigOK || s.ConfigMsg != "plimsoll.yaml:3: bad\nplimsoll.yaml:5: worse" {
		t.Errorf("config ok %v: %q", s.ConfigOK, s.ConfigMsg)
	}
	w.wantProblem("configuration: plimsoll.yaml:3: bad (the last good one is in force)")
	w.wantProblem("configuration: plimsoll.yaml:5: worse (the last good one is in force)")
	if got := threshold(); got != 3 {
		t.Errorf("threshold %v CPUs after an error, want the last good 3", got)
	}
	w.agent.Configure(strategy.Node{Strategy: strategy.Strategy{SharePoolThresholdPercent: 50}}, nil)
	if s := w.agent.Status(); !s.ConfigOK || s.ConfigMsg != "" || len(s.Problems) > 0 || threshold() != 2 {
		t.Errorf("after a good one: %+v", s)
	}
}

// TestRunTurnsWhenAsked runs the loop itself: it turns when a group is due and when it is woken, and its end puts
// everything back.
func TestRunTurnsWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		start, from := time.Now(), w.kernel.Now()
		w.agent.Clock = func() time.Time {
			w.kernel.Advance(time.Since(start) - w.kernel.Now().Sub(from))
			return w.kernel.Now()
		}
		w.alone(w.container("/lab/a", 50*ms, sim.Load{}))
		w.kernel.SetTasks("/lab/a", 1)
		var turns atomic.Int64
		w.place.asked = func() { turns.Add(1) }
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- w.agent.Run(ctx) }()
		time.Sleep(500 * ms)
		synctest.Wait()
		w.want("/lab/a", 50*ms, 50*ms)
		before := turns.Load()
		for _, wake := range []func(){
			func() { w.place.wake <- struct{}{} },
			func() { w.agent.Configure(strategy.DefaultNode(), nil) },
		} {
			wake()
			time.Sleep(gather)
			synctest.Wait()
			if n := turns.Load() - before; n != 1 {
				t.Errorf("%d turns when woken, want 1", n)
			}
			before = turns.Load()
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := turns.Load() - before; n < 40 || n > 120 {
			t.Errorf("%d turns in 5 s, want about one each 90 ms", n)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.want("/lab/a", 50*ms, 0)
	})
}

// TestLongTurnsLeaveRest: where each turn asks for another one, 60 ms of rest follow a turn of 21 ms, and 90 ms one of
// 90 ms.
func TestLongTurnsLeaveRest(t *testing.T) {
	for long, want := range map[time.Duration]int64{21 * ms: 99, 90 * ms: 45} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.agent.Clock = func() time.Time { return w.kernel.Now() }
			turns := int64(0)
			w.place.asked = func() {
				turns++
				time.Sleep(long)
				w.kernel.Advance(long)
				w.agent.wake()
			}
			ctx, stop := context.WithTimeout(context.Background(), 8*time.Second)
			defer stop()
			if err := w.agent.Run(ctx); err != nil {
				t.Error(err)
			}
			if turns < want-2 || turns > want+2 {
				t.Errorf("%d turns of %v in 8 s, want %d", turns, long, want)
			}
		})
	}
}

// TestStopSaysWhatItCouldNotRestore: the loop's end is an error when something of ours stays.
func TestStopSaysWhatItCouldNotRestore(t *testing.T) {
	w := raised(t)
	w.kernel.Fault = func(op, _ string, _ []byte) error {
		if op == "write" {
			return syscall.EROFS
		}
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := w.agent.Run(ctx); err == nil || !strings.Contains(err.Error(), "restore quota of /lab/a to 50ms") {
		t.Errorf("got %v", err)
	}
	w.kernel.Fault = nil
	if err := w.agent.Run(ctx); err != nil {
		t.Error(err)
	}
	w.want("/lab/a", 50*ms, 0)
}
