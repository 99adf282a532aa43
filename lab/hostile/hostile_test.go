package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/config"
	"plimsoll/internal/experiment"
	"plimsoll/internal/probe"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

const ms = time.Millisecond

// TestThrottlesOf: which throttles count, and how long each waits for the write that ends it.
func TestThrottlesOf(t *testing.T) {
	begin := func(group uint64, at, expires, used time.Duration) probe.Event {
		return probe.Event{Group: group, Kind: probe.Begin, Since: at, At: at,
			Facts: probe.Facts{Quota: 5 * ms, Used: used, Expires: expires}}
	}
	end := func(group uint64, since, at time.Duration) probe.Event {
		return probe.Event{Group: group, Kind: probe.End, Since: since, At: at}
	}
	const from, to = 1000 * ms, 2000 * ms
	missed := &miss{After: 100 * ms, Length: 50 * ms, inode: 1}
	for name, c := range map[string]struct {
		events []probe.Event
		writes []write
		want   []throttle
	}{
		"ended": {[]probe.Event{begin(1, 1100*ms, 1150*ms, 10*ms)}, []write{{1, 1103 * ms}},
			[]throttle{{latency: 3 * ms}}},
		"by the first write": {[]probe.Event{begin(1, 1100*ms, 1150*ms, 10*ms)},
			[]write{{1, 1099 * ms}, {1, 1101 * ms}, {1, 1102 * ms}}, []throttle{{latency: ms}}},
		"before the writer is back": {
			[]probe.Event{begin(1, 1100*ms, 1150*ms, 10*ms), end(1, 1100*ms, 1101*ms)}, []write{{1, 1103 * ms}},
			[]throttle{{latency: ms}}},
		"not by another's": {[]probe.Event{begin(1, 1100*ms, 1150*ms, 10*ms)}, []write{{2, 1101 * ms}},
			[]throttle{{50 * ms, missed}}},
		"not by one in the next": {[]probe.Event{begin(1, 1100*ms, 1150*ms, 10*ms), end(1, 1100*ms, 1150*ms)},
			[]write{{1, 1151 * ms}}, []throttle{{50 * ms, missed}}},
		"by itself":             {[]probe.Event{begin(1, 1100*ms, 1150*ms, 10*ms), end(1, 1100*ms, 1120*ms)}, nil, nil},
		"at the cap":            {[]probe.Event{begin(1, 1100*ms, 1150*ms, 36*ms)}, nil, nil},
		"below it by a hair":    {[]probe.Event{begin(1, 1100*ms, 1150*ms, 35*ms)}, nil, []throttle{{50 * ms, missed}}},
		"too short to be ended": {[]probe.Event{begin(1, 1100*ms, 1103*ms, 10*ms)}, nil, nil},
		"before the window":     {[]probe.Event{begin(1, 999*ms, 1050*ms, 10*ms)}, nil, nil},
		"after it":              {[]probe.Event{begin(1, 2000*ms, 2050*ms, 10*ms)}, nil, nil},
		"of a use that is unknown": {[]probe.Event{begin(1, 1100*ms, 1150*ms, probe.NoUse)}, []write{{1, 1101 * ms}},
			[]throttle{{latency: ms}}},
	} {
		got := throttlesOf(c.events, c.writes, 40*ms, from, to)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(throttle{}, miss{})); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// TestSummarize: a throttle that is missed counts with its length.
func TestSummarize(t *testing.T) {
	var list []throttle
	for i := range 99 {
		list = append(list, throttle{latency: time.Duration(99-i) * ms})
	}
	lasted := miss{After: 2 * ms, Length: 90 * ms, inode: 1}
	got := summarize(append(list, throttle{90 * ms, &lasted}))
	want := outcome{Throttles: 100, P50: 50 * ms, P99: 98 * ms, Missed: []miss{lasted}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(miss{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestAims: each aim is missed by itself.
func TestAims(t *testing.T) {
	quiet := outcome{Throttles: 400, P50: ms / 2, P99: 2 * ms, Memory: 50 << 20}
	for want, change := range map[string]func(*row){
		"":                  func(*row) {},
		"p99 in ms, status": func(r *row) { r.Hostile.P99 = 5*ms + 1 },
		"throttles that last": func(r *row) {
			r.Hostile.Missed = []miss{{Group: "/lab/job3", After: ms, Length: 50 * ms, Stall: 18 * ms}}
			r.Hostile.Stalls, r.Hostile.Longest = 3, 18*ms
			r.Hostile.Refused = map[string]int64{"refused-node": 2, "refused-late": 1}
		},
		"memory":         func(r *row) { r.Hostile.Memory = aimMemory + 1 },
		"agents":         func(r *row) { r.Fault = "killed" },
		"throttles in a": func(r *row) { r.Quiet.Throttles = 0 },
	} {
		r := row{Condition: "status", Quiet: quiet, Hostile: quiet}
		r.Hostile.P99 = 5 * ms
		change(&r)
		whole := &result{settings: &settings{}, Rows: []row{{Condition: "log", Quiet: quiet, Hostile: quiet}, r}}
		named := "Stalls beside status: 3, the longest of 18 ms\n" +
			"Missed beside status: /lab/job3 after 0.001 s for 50 ms, 18 ms of it a stall\n" +
			"The agent refused beside status: 1 refused-late, 2 refused-node\n"
		for _, f := range whole.Aims() {
			if missed := want != "" && strings.HasPrefix(f.Name, want); f.Met() == missed {
				t.Errorf("%q: %+v", want, f)
			}
		}
		var page bytes.Buffer
		if whole.WriteText(&page); strings.Contains(page.String(), "missed\n") != (want != "") ||
			strings.Contains(page.String(), named) != (len(r.Hostile.Missed) > 0) ||
			strings.Contains(page.String(), "NaN") {
			t.Errorf("%q: the page does not agree:\n%s", want, page.String())
		}
	}
}

// TestAimOfMemory: the limit is the chart's.
func TestAimOfMemory(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "helm", "plimsoll", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var chart struct {
		Resources struct {
			Limits struct{ Memory string }
		}
	}
	if err := yaml.Unmarshal(data, &chart); err != nil {
		t.Fatal(err)
	}
	if want := "160Mi"; chart.Resources.Limits.Memory != want || aimMemory != 160<<20 {
		t.Errorf("the chart's limit is %q, the bench's %d bytes", chart.Resources.Limits.Memory, aimMemory)
	}
}

// TestConfigurations: the agent takes each of them, and has the victims burst in all.
func TestConfigurations(t *testing.T) {
	b := &bench{Bench: &frame.Bench{Groups: &experiment.Groups{}}, settings: &settings{Asking: 3, Throttling: 2}}
	for _, c := range conditions() {
		for _, begun := range []bool{false, true} {
			file, err := config.Parse(c.name, []byte(c.configure(b, begun)))
			if err != nil {
				t.Errorf("%s: %v\n%s", c.name, err, c.configure(b, begun))
				continue
			}
			if got := file.Resolve("/job1").Strategy; got.Policy != strategy.Auto ||
				got.CFSQuotaBurstPercent != capPercent {
				t.Errorf("%s: victims have %+v", c.name, got)
			}
		}
	}
}

func parse(args []string) (*settings, error) {
	s := usual()
	return s, frame.Parse("hostile", s, args)
}

// TestMountsOfItsOwn: the bench starts again in a mount namespace before it measures, and once; a worker does not.
func TestMountsOfItsOwn(t *testing.T) {
	for _, c := range []struct {
		env  string
		args []string
		part bool
	}{{"", nil, true}, {"1", nil, false}, {"1", []string{"-worker", "0"}, true}} {
		t.Setenv(isolated, c.env)
		s, err := parse(c.args)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Part() != nil; got != c.part {
			t.Errorf("%q, %q: a part: %v", c.env, c.args, got)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	if s, err := parse([]string{"-only", "status,log", "-seconds", "2"}); err != nil || len(s.only) != 2 ||
		s.Job.Worker >= 0 || s.span != 2*time.Second {
		t.Errorf("%+v, %v", s, err)
	}
	for _, args := range [][]string{{"-only", "stauts"}, {"-seconds", "0.5"}, {"-seconds", "601"}, {"-victims", "0"},
		{"-pods", "0"}, {"-every", "1ms"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}

// TestBackgroundEnds: whatever was started ends with the background, and what failed is told.
func TestBackgroundEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c background
		var n [3]int
		for i := range n {
			c.every(t.Context(), time.Second, func(ctx context.Context) error {
				n[i]++
				if n[i] == 5 && i == 2 {
					return errors.New("the third fails")
				}
				if n[i] == 7 {
					<-ctx.Done() // until the end
				}
				return nil
			})
		}
		time.Sleep(10 * time.Second)
		if err := c.end(); err == nil || n[0] < 7 || n[1] < 7 || n[2] != 5 {
			t.Errorf("%v, %v", n, err)
		}
	})
}
