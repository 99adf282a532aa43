package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/lab/frame"
)

func TestPlan(t *testing.T) {
	s := size{Pods: 110, Containers: 250}
	units := s.plan("/base")
	inPod, seen, busy := map[string]int{}, map[string]bool{}, map[string]bool{}
	pods, throttled := 0, 0
	for _, u := range units {
		if seen[u.group] || u.group != "/base/"+u.name {
			t.Errorf("%+v: twice, or of another name", u)
		}
		seen[u.group] = true
		if u.pod == "" {
			pods, busy[u.group] = pods+1, u.busy
			continue
		}
		if !seen[u.pod] {
			t.Errorf("%s comes before its pod %s", u.group, u.pod)
		}
		inPod[u.pod]++
		if u.busy {
			throttled++
			if !busy[u.pod] {
				t.Errorf("%s is busy, its pod is not", u.group)
			}
		}
	}
	if pods != 110 || len(units) != 360 || throttled != 25 {
		t.Errorf("%d pods, %d groups, %d throttled", pods, len(units), throttled)
	}
	for pod, n := range inPod {
		if n < 2 || n > 3 {
			t.Errorf("%d containers in %s", n, pod)
		}
	}
}

// missed counts the aims of a result, and those that it does not meet.
func missed(r *result) (missed, all int) {
	for _, f := range r.Aims() {
		if f.AtMost > 0 {
			all++
		}
		if f.AtMost > 0 && !f.Met() {
			missed++
		}
	}
	return missed, all
}

func TestVerdicts(t *testing.T) {
	good := scenario{Name: "idle", AimCPU: 0.01, Agent: rate{CPUs: 0.01}, Bare: rate{CPUs: 0.005}, RSS: 30 << 20}
	for name, c := range map[string]struct {
		change func(*scenario)
		missed int
	}{
		"all met":      {func(*scenario) {}, 0},
		"CPU":          {func(s *scenario) { s.Agent.CPUs, s.Bare.CPUs = 0.011, 0.006 }, 1},
		"memory":       {func(s *scenario) { s.RSS++ }, 1},
		"ratio":        {func(s *scenario) { s.Bare.CPUs = 0.004 }, 1},
		"descriptors":  {func(s *scenario) { s.Open = 1.001 }, 1},
		"no bare loop": {func(s *scenario) { s.Bare.CPUs = 0 }, 1},
	} {
		s := good
		c.change(&s)
		if got, all := missed(&result{Scenarios: []scenario{s}}); got != c.missed || all != 4 {
			t.Errorf("%s: %d of %d missed", name, got, all)
		}
	}
}

func TestSince(t *testing.T) {
	t0 := time.Unix(1000, 0)
	got := spent{t0.Add(2 * time.Second), 70 * time.Millisecond, 500}.since(spent{t0, 50 * time.Millisecond, 100})
	if got != (rate{CPUs: 0.01, Reads: 200}) {
		t.Errorf("%+v", got)
	}
}

func parse(args []string) (*settings, error) {
	s := usual()
	return s, frame.Parse("cost", s, args)
}

func TestParseRefuses(t *testing.T) {
	for _, args := range [][]string{{"-pods", "0"}, {"-pods", "110,0"}, {"-pods", "110,many"}, {"-pods", "-1"},
		{"-pods", "1,5001"}, {"-containers", "109"}, {"-seconds", "0.5"}, {"-seconds", "3600"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}

func TestParsePods(t *testing.T) {
	for text, want := range map[string][]int{"110": {110}, "110,1000, 3000": {110, 1000, 3000}, "0,7": {0, 7}} {
		s, err := parse([]string{"-pods", text})
		if got := append([]int{s.size.Pods}, s.idle...); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// TestNothingIsThrottledAmongIdlePods: no container has a limit that throttles it at its start.
func TestNothingIsThrottledAmongIdlePods(t *testing.T) {
	for _, u := range (size{Pods: 30, Containers: 30, idle: true}).plan("/base") {
		if u.busy || u.limit() != wanted {
			t.Errorf("%+v", u)
		}
	}
}

func TestCrowdVerdicts(t *testing.T) {
	few := crowd{Pods: 110, Groups: 220, Agent: rate{CPUs: 0.002}, RSS: 30 << 20}
	good := crowd{Pods: 1000, Groups: 2000, Agent: rate{CPUs: 0.005}, RSS: 40 << 20, Open: 1}
	for name, c := range map[string]struct {
		change func(c *crowd)
		missed int
	}{
		"all met":          {func(*crowd) {}, 0},
		"CPU":              {func(c *crowd) { c.Agent.CPUs = 0.0051 }, 1},
		"memory":           {func(c *crowd) { c.RSS++ }, 1},
		"descriptors":      {func(c *crowd) { c.Open = 1.01 }, 1},
		"growth of CPU":    {func(c *crowd) { c.Pods, c.Agent.CPUs = 220, 0.0041 }, 1},
		"growth in RSS":    {func(c *crowd) { c.Pods, c.Agent.CPUs, c.RSS = 220, 0.004, 61<<20 }, 1},
		"linear is enough": {func(c *crowd) { c.Pods, c.Agent.CPUs, c.RSS = 220, 0.004, 60<<20 }, 0},
	} {
		many := good
		c.change(&many)
		r := &result{Idle: []crowd{few, many}}
		var page bytes.Buffer
		if r.WriteText(&page); !strings.Contains(page.String(), "from 110") {
			t.Errorf("%s:\n%s", name, &page)
		}
		if got, _ := missed(r); got != c.missed {
			t.Errorf("%s: %d missed\n%s", name, got, &page)
		}
	}
}
