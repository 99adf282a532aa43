package agent

import (
	"testing"
	"time"

	"plimsoll/internal/bandwidth"
)

// beats collects the heartbeats of an agent.
func (w *world) beats() *[]time.Time {
	var list []time.Time
	w.agent.Beat = func(now time.Time) { list = append(list, now) }
	return &list
}

// TestIdleAgentBeats: an agent that has nothing to do, or nobody to look after, takes a turn each second or sooner.
func TestIdleAgentBeats(t *testing.T) {
	for name, pods := range map[string]int{"nobody to look after": 0, "idle pods": 10} {
		for _, events := range []bool{true, false} {
			w := newWorld(t)
			if events {
				w.subscribes(true)
			}
			w.kernel.AddGroup("/idle")
			w.idlePods(pods, 50*ms)
			beats, begin := w.beats(), w.kernel.Now()
			w.run(10 * time.Minute)
			last := begin
			for _, at := range *beats {
				if d := at.Sub(last); d > 1100*ms {
					t.Errorf("%s, events %v: no heartbeat for %v", name, events, d)
				}
				last = at
			}
			if w.kernel.Now().Sub(last) > 1100*ms {
				t.Errorf("%s, events %v: the last heartbeat was at %v", name, events, last)
			}
		}
	}
}

// TestAnswersBeat: an answered throttle sends a heartbeat, but not where the loop's turn is overdue.
func TestAnswersBeat(t *testing.T) {
	w := raised(t)
	w.subscribes(true)
	w.run(time.Second)
	beats := w.beats()
	answer := func() int {
		before := len(*beats)
		w.agent.AnswerThrottles([]bandwidth.Throttle{{Inode: w.id("/lab/a").Inode, At: w.kernel.Now()}})
		return len(*beats) - before
	}
	w.kernel.Advance(w.agent.next.Sub(w.kernel.Now()))
	if n := answer(); n != 1 {
		t.Errorf("%d heartbeats with an answer", n)
	}
	w.kernel.OnThrottle = nil
	w.kernel.Advance(2 * overdue)
	if n := answer(); n != 0 {
		t.Errorf("%d heartbeats although the loop hangs", n)
	}
}

// TestBeatComesAfterTheWrites: a write that hangs is followed by none.
func TestBeatComesAfterTheWrites(t *testing.T) {
	w := newWorld(t)
	w.hog("/lab/a")
	beats := w.beats()
	written := 0
	w.kernel.Fault = func(op, _ string, _ []byte) error {
		if op == "write" {
			written++
			if len(*beats) > 0 {
				t.Error("the heartbeat of a turn comes before its write")
			}
		}
		return nil
	}
	w.agent.Tick(w.kernel.Now())
	if written == 0 || len(*beats) != 1 {
		t.Errorf("%d writes, %d heartbeats", written, len(*beats))
	}
	w.kernel.Fault = nil
	if w.agent.DryRunOptions().Beat != nil {
		t.Error("a dry run has a heartbeat")
	}
	w.agent.Status() // a turn for who asks
	if len(*beats) != 1 {
		t.Error("who asks for the status has the agent send a heartbeat")
	}
}

// TestGroupWithoutCpuacct: a group of the cpu hierarchy alone is raised like others, by what its threads use.
func TestGroupWithoutCpuacct(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{"cpu/lab", "cpu/lab/a"} { // which makes none in cpuacct
		if err := w.kernel.Mkdir(dir); err != nil {
			t.Fatal(err)
		}
	}
	w.hog("/lab/a")
	w.host.threads = func(tids []int) map[int]time.Duration {
		return map[int]time.Duration{tids[0]: w.kernel.Used("/lab/a")}
	}
	w.run(5 * time.Second)
	w.wantRaised("/lab/a", 50*ms)
	w.agent.Tick(w.kernel.Now())
	known, used := w.status("/lab/a").Totals.Usage, w.kernel.Used("/lab/a")
	if missing := used - known; missing < 0 || missing > 400*ms {
		t.Errorf("knows of %v, used were %v", known, used)
	}
}
