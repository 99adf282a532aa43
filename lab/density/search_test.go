package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

func TestMost(t *testing.T) {
	for limit := 0; limit <= 20; limit++ {
		for truth := 0; truth <= limit; truth++ {
			asked := map[int]bool{}
			got, err := most(limit, func(n int) (bool, error) {
				if n < 1 || n > limit || asked[n] {
					t.Fatalf("limit %d: asks for %d, after %v", limit, n, asked)
				}
				asked[n] = true
				return n <= truth, nil
			})
			if err != nil || got != truth {
				t.Errorf("limit %d: %d, %v, want %d", limit, got, err, truth)
			}
			if len(asked) > 9 {
				t.Errorf("limit %d, truth %d: asked %d times", limit, truth, len(asked))
			}
		}
	}
	broken := errors.New("broken")
	if _, err := most(5, func(int) (bool, error) { return true, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestFits(t *testing.T) {
	for _, c := range []struct {
		s    step
		want bool
	}{
		{step{P99: 100 * time.Millisecond, Requests: 10}, true},
		{step{P99: 101 * time.Millisecond, Requests: 10}, false},
		{step{P99: 10 * time.Millisecond, Requests: 100, Errors: 1}, true},
		{step{P99: 10 * time.Millisecond, Requests: 100, Errors: 2}, false},
		{step{}, false},
	} {
		if got := c.s.fits(100 * time.Millisecond); got != c.want {
			t.Errorf("%+v fits: %v", c.s, got)
		}
	}
}

func TestConclusion(t *testing.T) {
	s := &settings{cpus: 2, use: 0.1, bound: 100 * time.Millisecond, work: 20 * time.Millisecond, step: 8 * time.Second}
	for _, c := range []struct {
		without, with int
		want, not     string
	}{
		{4, 10, "would take 5.00 CPUs instead of 2: 3.00 CPUs saved", "fill the machine"},
		{9, 18, "it would fill the machine", ""},
		{5, 5, "did not raise the density", "saved"},
		{6, 5, "did not raise the density", "saved"},
		{0, 0, "too tight", "saved"},
		{0, 3, "no number of replicas kept the bound", "saved"},
	} {
		r := result{settings: s, Rate: 5,
			Without: side{Policy: strategy.None, Most: c.without,
				Steps: []step{{Replicas: 5, Limit: 0.4, P99: 200 * time.Millisecond, Requests: 200, Throttled: 0.2}}},
			With: side{Policy: strategy.Auto, Most: c.with,
				Steps: []step{{Replicas: 5, Limit: 0.4, P99: 50 * time.Millisecond, Requests: 200}}}}
		var b bytes.Buffer
		r.WriteText(&b)
		text := b.String()
		if !strings.Contains(text, c.want) || c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("%d, %d: want %q, not %q:\n%s", c.without, c.with, c.want, c.not, text)
		}
		if !strings.Contains(text, "200 ms     20.0 %       200       0          no") {
			t.Errorf("the step is not shown:\n%s", text)
		}
	}
}

func TestOtherCause(t *testing.T) {
	slow := 300 * time.Millisecond
	for _, c := range []struct {
		s    side
		want bool
	}{
		{side{Most: 2, Steps: []step{{Replicas: 3, P99: slow, Requests: 9}}}, true},
		{side{Most: 2, Steps: []step{{Replicas: 3, P99: slow, Requests: 9, Throttled: 0.2}}}, false},
		{side{Most: 2, Steps: []step{{Replicas: 4, P99: slow, Requests: 9},
			{Replicas: 3, P99: slow, Requests: 9, Throttled: 0.2}}}, false},
		{side{Most: 2}, false},
	} {
		if got := c.s.otherCause(100 * time.Millisecond); (got != "") != c.want {
			t.Errorf("%+v: %q", c.s, got)
		}
	}
}

func parse(args []string) (*settings, error) {
	s := usual()
	return s, frame.Parse("density", s, args)
}

func TestParse(t *testing.T) {
	s, err := parse([]string{"-seconds", "2", "-policy", "cpuBurstOnly", "-p99", "80ms"})
	if err != nil || s.step != 2*time.Second || s.policy != strategy.CPUBurstOnly || s.bound != 80*time.Millisecond {
		t.Errorf("%+v, %v", s, err)
	}
	for _, args := range [][]string{{"-policy", "none"}, {"-policy", "fast"}, {"-seconds", "0"}, {"-work", "0s"},
		{"-p99", "20ms"}, {"-use", "0"}, {"-use", "1000000"}} {
		if s, err := parse(args); err == nil {
			t.Errorf("%v: taken as %+v", args, s)
		}
	}
}
