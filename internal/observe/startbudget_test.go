package observe

import (
	"fmt"
	"testing"
	"time"
)

// TestStartBudget: time that several containers start in counts once, time between starts does not count, and a pod
// whose starts are an hour ago has its budget back, but not one that goes on being started.
func TestStartBudget(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(0, 0).Add(time.Duration(seconds) * time.Second) }
	type look struct{ born, now int }
	for name, c := range map[string]struct {
		looks []look
		want  time.Duration
	}{
		"one":                   {[]look{{0, 0}, {0, 5}, {0, 30}}, 30 * time.Second},
		"two at a time":         {[]look{{0, 10}, {5, 10}, {0, 20}, {5, 20}}, 20 * time.Second},
		"one after the other":   {[]look{{0, 10}, {100, 100}, {100, 120}}, 30 * time.Second},
		"an hour later":         {[]look{{0, 50}, {3700, 3710}}, 10 * time.Second},
		"again and again":       {[]look{{0, 50}, {1800, 1850}, {3700, 3750}}, 150 * time.Second},
		"seen late, long after": {[]look{{0, 0}, {0, 55}}, 55 * time.Second},
	} {
		s := startBudgets{}
		var got time.Duration
		for _, l := range c.looks {
			got = s.spend("/pod", at(l.born), at(l.now))
			s.spend("/other", at(l.born), at(l.now))
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	s := startBudgets{}
	for i := range 10000 {
		s.spend(fmt.Sprint("/", i), at(i), at(i))
	}
	if len(s) > 3700 {
		t.Errorf("%d pods are remembered", len(s))
	}
}
