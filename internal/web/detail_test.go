package web

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/recent"
	"plimsoll/internal/report"
	"plimsoll/internal/view"
)

// TestBacklogHasItsOwnBurst: the tokens of a period are those of the burst that was in force in it, not of the one now.
func TestBacklogHasItsOwnBurst(t *testing.T) {
	s := onStage(t, &tape{}, nil)
	events := s.listen("/api/v1/live")
	s.await(events, "view", nil)
	detail := func() (d view.Detail) {
		t.Helper()
		_, body := get(t, s.url+"/api/v1/container?id=/lab/a")
		if err := json.Unmarshal([]byte(body), &d); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		return d
	}
	s.tape.add("/lab/a", recent.Period{End: t0.Add(time.Since(testStart())).UnixMilli(), Used: 10_000, Quota: 50_000,
		Burst: recent.UnknownBurst})
	s.eventually("the period is kept", func() bool { return len(detail().Periods.End) == 1 })
	s.agent.set(func(st *report.Status) { st.Containers[0].Burst.InForce = 50 * time.Millisecond })
	s.await(events, "change", func(data string) bool { return strings.Contains(data, `"burst_ns":50000000`) })
	if d := detail(); d.Row.Burst != 50*time.Millisecond || d.Periods.Tokens[0] != 0 {
		t.Errorf("a burst of %v is in force now; without one %d us were saved", d.Row.Burst, d.Periods.Tokens[0])
	}
}

// TestClockIsSetBack: the periods that end from then on are shown, and not only once the clock is where it was.
func TestClockIsSetBack(t *testing.T) {
	w := newWatcher(nil, SiteOptions{Now: later, Log: quiet()})
	w.kept.store = recent.New(0)
	var r strip
	take := func(now time.Time, ends ...time.Time) []int64 {
		f := frame{Whole: true, Status: healthy(), Lost: 1}
		f.Status.Now, f.Status.Containers = now, many(1)
		row := f.Status.Containers[0].Cgroup
		var list []recent.Period
		for _, end := range ends {
			list = append(list, recent.Period{End: end.UnixMilli(), Used: 1})
		}
		f.Periods = map[string][]byte{row: recent.Append(nil, list)}
		w.take(f)
		return r.next(w, w.scene, w.scene.view.Rows[0]).End
	}
	before := t0.Add(-time.Hour)
	for i, c := range []struct {
		got  []int64
		want time.Time
	}{
		{take(t0, t0), t0},
		{take(before, t0.Add(100*time.Millisecond), before), before}, // one ended while the clock had not been set
		{take(before.Add(time.Second), before.Add(time.Second)), before.Add(time.Second)},
	} {
		if len(c.got) != 1 || c.got[0] != c.want.UnixMilli() {
			t.Errorf("frame %d: periods that end at %v, want %v", i, c.got, c.want.UnixMilli())
		}
	}
	if since := w.scene.view.Recording.Since; !since.Equal(before) {
		t.Errorf("recorded without a gap since %v, want %v", since, before)
	}
}

// TestLostSince: periods that were lost while another program followed alone are not among those of this recording.
func TestLostSince(t *testing.T) {
	w := newWatcher(nil, SiteOptions{Now: later, Log: quiet()})
	w.kept.store = recent.New(0)
	for i, c := range [][2]int64{{7, 0}, {9, 2}} {
		f := frame{Whole: true, Status: healthy(), Lost: c[0]}
		f.Status.Now = t0.Add(time.Duration(i) * time.Second)
		w.take(f)
		if got := w.scene.view.Recording.Lost; got != c[1] {
			t.Errorf("frame %d: %d lost, want %d", i, got, c[1])
		}
	}
}

// TestScenesCountOverALoss: a reader that was stuck meanwhile applies no change to a view that it does not have.
func TestScenesCountOverALoss(t *testing.T) {
	w := newWatcher(nil, SiteOptions{Now: later, Log: quiet()})
	w.kept.store = recent.New(0)
	f := frame{Whole: true, Status: healthy()}
	f.Status.Now = t0
	w.take(f)
	w.lose("the agent does not answer")
	if w.take(f); w.scene.n != 3 || w.scene.change != nil {
		t.Errorf("scene %d, with a change: %v", w.scene.n, w.scene.change != nil)
	}
}

// TestDetailFollowsItsSettings: what depends on limit, burst or policy comes with the next frame after a change of
// them, and not ten seconds later.
func TestDetailFollowsItsSettings(t *testing.T) {
	s := onStage(t, &tape{}, nil)
	events := s.listen("/api/v1/live?container=/lab/a")
	s.await(events, "detail", nil)
	s.tape.add("/lab/a", recent.Period{End: t0.Add(time.Since(testStart())).UnixMilli(), Used: 10_000, Quota: 50_000})
	s.await(events, "periods", nil)
	for name, change := range map[string]func(*report.Container){
		"burst":  func(c *report.Container) { c.Burst.InForce = 20 * time.Millisecond },
		"limit":  func(c *report.Container) { c.Limit = 80 * time.Millisecond },
		"policy": func(c *report.Container) { c.Strategy.Policy = "cpuBurstOnly" },
	} {
		s.agent.set(func(st *report.Status) { change(&st.Containers[0]) })
		want := s.agent.container(0)
		begun := time.Now()
		s.await(events, "detail", func(data string) bool {
			var d view.Detail
			if err := json.Unmarshal([]byte(data), &d); err != nil || len(d.Advice) == 0 {
				t.Fatalf("%s: %v: %s", name, err, data)
			}
			now := view.Alternative{}
			for _, a := range d.Advice {
				if a.Now {
					now = a
				}
			}
			return d.Row.Policy == string(want.Strategy.Policy) && now.Limit == want.Limit &&
				now.Burst == want.Burst.InForce
		})
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("%s: the row that is marked now came after %v", name, took)
		}
	}
}
