package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/recent"
	"plimsoll/internal/report"
)

// TestFramesRebuildTheStatus: what a follower makes of frames is what the agent has, in all that a page shows.
func TestFramesRebuildTheStatus(t *testing.T) {
	one := func(path string, change func(*report.Container)) report.Container {
		c := report.Container{Cgroup: path, Name: path, Why: "calm",
			Totals: report.Totals{Usage: time.Second, Events: &report.Throttles{}}}
		if change != nil {
			change(&c)
		}
		return c
	}
	used := func(d time.Duration) func(*report.Container) {
		return func(c *report.Container) {
			c.Totals.Usage, c.Totals.ThrottledWall, c.Totals.Throttled, c.Totals.Refills, c.Totals.AtCap =
				d, d/2, int64(d), 7, 3
		}
	}
	steps := []struct {
		list                []report.Container
		whole, counts, whys int // sent
	}{
		{[]report.Container{one("/a", nil), one("/b", nil), one("/c", nil)}, 3, 0, 0},
		{[]report.Container{one("/a", nil), one("/b", used(5)), one("/c", nil)}, 0, 1, 0},
		{[]report.Container{one("/a", func(c *report.Container) { c.Why = "raised" }), one("/b", used(6)),
			one("/c", nil)}, 0, 1, 1},
		{[]report.Container{one("/b", used(6)), one("/c", func(c *report.Container) { c.Totals.Events = nil })}, 1, 0,
			0},
		{[]report.Container{one("/d", nil), one("/b",
			func(c *report.Container) { used(6)(c); c.Totals.Waited = &report.Waited{Wanted: 1} })}, 2, 0, 0},
		{[]report.Container{one("/d", nil)}, 0, 0, 0},
		{[]report.Container{one("/d", func(c *report.Container) { used(8)(c); c.Why = "raised" })}, 0, 1, 1},
		{nil, 0, 0, 0},
		{[]report.Container{one("/a", nil)}, 1, 0, 0},
	}
	var before []report.Container
	var k kept
	for i, step := range steps {
		slices.SortFunc(step.list, func(a, b report.Container) int { return strings.Compare(a.Cgroup, b.Cgroup) })
		news := compare(before, step.list)
		news.Whole = i == 0
		sent, want := [3]int{len(news.Status.Containers), len(news.Counts), len(news.Whys)}, [3]int{step.whole,
			step.counts, step.whys}
		if sent != want {
			t.Errorf("step %d: %d whole, counts and whys sent, want %d", i, sent, want)
		}
		before = step.list
		k.merge(news)
		got, all := map[string]report.Container{}, map[string]report.Container{}
		for _, c := range k.status.Containers {
			got[c.Cgroup] = c
		}
		for _, c := range step.list {
			all[c.Cgroup] = c
		}
		if diff := cmp.Diff(all, got); diff != "" || len(k.status.Containers) != len(step.list) {
			t.Fatalf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

// seldom is an agent that reads its only group for a status, and not for a glance.
type seldom struct{ fake }

func (*seldom) Status() report.Status {
	return report.Status{Containers: []report.Container{{Cgroup: "/a", Totals: report.Totals{Usage: time.Hour}}}}
}

func (*seldom) Glance([]report.Container) report.Status {
	return report.Status{Containers: []report.Container{{Cgroup: "/a"}}}
}

// TestFollowerBeginsWithCountersOfNow: differences are formed from the first frame.
func TestFollowerBeginsWithCountersOfNow(t *testing.T) {
	f := newFeed(newSide(newAnswers(local{&seldom{}}, time.Now, quiet())), &seldom{}, nil)
	g, r := glances{agent: f.agent, patience: time.Minute}, recorder{}
	read := func(one *follower) time.Duration {
		var news frame
		if err := json.Unmarshal(<-one.frames, &news); err != nil {
			t.Fatal(err)
		}
		if news.Whole {
			return news.Status.Containers[0].Totals.Usage
		}
		return time.Duration(news.Counts["/a"][0])
	}
	var followers []*follower
	for i := range 2 {
		followers = append(followers, &follower{frames: make(chan []byte, 1), whole: true})
		f.followers[followers[i]] = true
		for _, want := range []time.Duration{time.Hour, 0} {
			f.frame(&g, &r)
			for k, one := range followers {
				if got := read(one); got != want {
					t.Errorf("follower %d of %d: usage %v, want %v", k, len(followers), got, want)
				}
			}
		}
	}
}

// TestWaitingPeriodsAreBounded: while the agent's loop hangs, what would fill memory is counted as lost.
func TestWaitingPeriodsAreBounded(t *testing.T) {
	tape := &tape{}
	r := recorder{from: tape}
	r.start()
	add := func(n int) {
		tape.add("/a", make([]recent.Period, n)...)
		r.take()
		r.bound()
	}
	if add(maxEnded); len(r.ended["/a"]) != maxEnded || r.lost != 0 {
		t.Errorf("%d periods wait, %d lost", len(r.ended["/a"]), r.lost)
	}
	if add(1); len(r.ended) != 0 {
		t.Errorf("%d periods wait", len(r.ended["/a"]))
	}
	if add(1); len(r.ended["/a"]) != 1 || r.lost != maxEnded+1 {
		t.Errorf("%d periods wait, %d lost, want 1 and %d", len(r.ended["/a"]), r.lost, maxEnded+1)
	}
}

// TestFollowersAreBounded: the fifth is told to come back, and the owner of the control socket is not.
func TestFollowersAreBounded(t *testing.T) {
	s := onStage(t, nil, nil)
	c := s.site.agent
	for range maxFollowers {
		res, err := c.http.Get("http://plimsoll/api/v1/follow")
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(err, res)
		}
		defer res.Body.Close()
	}
	res, err := c.http.Get("http://plimsoll/api/v1/follow")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
	if err := c.follow(t.Context(), func(frame) {}); !errors.Is(err, ErrBusy) ||
		!strings.Contains(err.Error(), "too many programs") {
		t.Errorf("the fifth: %v", err)
	}
	own := Dial(filepath.Join(filepath.Dir(c.socket), ControlSocket))
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusServiceUnavailable} {
		res, err := own.http.Get("http://plimsoll/api/v1/follow")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("stream %d of the owner: %s", i, res.Status)
		}
	}
}

// TestHungAgentIsAskedOnce: while a status is under way no other one is asked for, and its list is not used.
func TestHungAgentIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{status: healthy(), block: make(chan struct{})}
		g := glances{agent: a, patience: time.Second, spare: make([]report.Container, 1)}
		for range 3 {
			if _, ok := g.next(false); ok || g.spare != nil {
				t.Fatalf("answered: %v, the next list has %d containers", ok, len(g.spare))
			}
		}
		close(a.block)
		if _, ok := g.next(false); !ok || a.asked != 1 {
			t.Errorf("answered: %v, asked %d times", ok, a.asked)
		}
	})
}

// TestSlowFollowerIsCutOff: frames are not kept for who does not read them.
func TestSlowFollowerIsCutOff(t *testing.T) {
	a := &fake{status: healthy()}
	f := newFeed(newSide(newAnswers(local{a}, later, quiet())), a, nil)
	f.running = true // frames are made by hand
	slow, other := f.join(maxFollowers), f.join(maxFollowers)
	g := glances{agent: a, patience: time.Minute}
	r := recorder{}
	r.start()
	for range frameQueue + 2 {
		f.frame(&g, &r)
		<-other.frames
	}
	if len(f.followers) != 1 || !f.followers[other] {
		t.Fatalf("%d follow", len(f.followers))
	}
	n := 0
	for range slow.frames {
		n++
	}
	if n != frameQueue {
		t.Errorf("%d frames were kept, want %d", n, frameQueue)
	}
}
