package peers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/probe"
)

const ms = time.Millisecond

func TestThrottles(t *testing.T) {
	begin := func(group uint64, at time.Duration) probe.Event {
		return probe.Event{Group: group, Kind: probe.Begin, At: at, Since: at, Facts: probe.Facts{Expires: 90 * ms}}
	}
	end := func(group uint64, since, at time.Duration) probe.Event {
		return probe.Event{Group: group, Kind: probe.End, At: at, Since: since}
	}
	for _, c := range []struct {
		name   string
		events []probe.Event
		want   []Throttle
	}{
		{"nothing", nil, nil},
		{"one", []probe.Event{begin(1, 10*ms), end(1, 10*ms, 40*ms)}, []Throttle{{10 * ms, 40 * ms, 90 * ms}}},
		{"the begin was not seen", []probe.Event{end(1, 10*ms, 40*ms)}, []Throttle{{10 * ms, 40 * ms, 0}}},
		{"it has not ended", []probe.Event{begin(1, 60*ms)}, []Throttle{{60 * ms, 100 * ms, 90 * ms}}},
		{"it ended after the last instant", []probe.Event{begin(1, 60*ms), end(1, 60*ms, 120*ms)},
			[]Throttle{{60 * ms, 100 * ms, 90 * ms}}},
		{"it began after the last instant", []probe.Event{begin(1, 110*ms)}, nil},
		{"one that is foreseen is none", []probe.Event{{Group: 1, Kind: probe.Dry, At: 10 * ms, Since: 20 * ms}}, nil},
		{"two groups at once", []probe.Event{begin(2, 10*ms), begin(1, 10*ms), end(1, 10*ms, 20*ms),
			end(2, 10*ms, 30*ms)},
			[]Throttle{{10 * ms, 20 * ms, 90 * ms}, {10 * ms, 30 * ms, 90 * ms}}},
		{"in order of their begins", []probe.Event{end(1, 50*ms, 60*ms), end(2, 20*ms, 70*ms)},
			[]Throttle{{20 * ms, 70 * ms, 0}, {50 * ms, 60 * ms, 0}}},
	} {
		if diff := cmp.Diff(c.want, Throttles(c.events, 100*ms)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

// TestStood: a pod's and its container's throttles at the same time count once.
func TestStood(t *testing.T) {
	list := []Throttle{{10 * ms, 40 * ms, 0}, {20 * ms, 30 * ms, 0}, {35 * ms, 50 * ms, 0}, {70 * ms, 90 * ms, 0}}
	for _, c := range []struct{ from, to, want time.Duration }{
		{0, 100 * ms, 60 * ms},
		{25 * ms, 80 * ms, 35 * ms},
		{50 * ms, 70 * ms, 0},
	} {
		if got := Stood(list, c.from, c.to); got != c.want {
			t.Errorf("from %v to %v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

func TestFirstEffect(t *testing.T) {
	throttles := []Throttle{{100 * ms, 150 * ms, 150 * ms}, {200 * ms, 210 * ms, 250 * ms},
		{260 * ms, 350 * ms, 350 * ms}}
	before := map[[2]string]string{{"container", "quota"}: "10000", {"container", "burst"}: "10000"}
	touch := func(file string, at time.Duration, value string) Touch { return Touch{"container", file, at, value} }
	for _, c := range []struct {
		name      string
		throttles []Throttle
		touches   []Touch
		want      Effect
	}{
		{"nothing throttles", nil, []Touch{touch("burst", 10*ms, "0")}, Effect{}},
		{"nobody writes", throttles, nil, Effect{Throttled: true}},
		{"a write before is none", throttles, []Touch{touch("quota", 99*ms, "12000")}, Effect{Throttled: true}},
		{"a higher quota", throttles, []Touch{touch("quota", 130*ms, "12000"), touch("quota", 140*ms, "14400")},
			Effect{true, true, 30 * ms, "container quota"}},
		{"in the instant of the begin", throttles, []Touch{touch("quota", 100*ms, "12000")},
			Effect{true, true, 0, "container quota"}},
		{"a refill ends a throttle early", throttles, []Touch{touch("burst", 209*ms, "10000")},
			Effect{true, true, 109 * ms, "container burst"}},
		{"a refused write changes nothing, and the throttle ends with its period", throttles,
			[]Touch{touch("burst", 120*ms, "10000"), touch("burst", 300*ms, "10000"), touch("quota", 320*ms, "12000")},
			Effect{true, true, 220 * ms, "container quota"}},
		{"a value that was set before the first throttle is no change after it", throttles,
			[]Touch{touch("quota", 50*ms, "12000"), touch("quota", 120*ms, "12000")}, Effect{Throttled: true}},
		{"the timer is late", []Throttle{{100 * ms, 149500 * time.Microsecond, 150 * ms}},
			[]Touch{touch("burst", 120*ms, "10000")},
			Effect{Throttled: true}},
		{"the period is not known", []Throttle{{100 * ms, 110 * ms, 0}}, []Touch{touch("burst", 105*ms, "10000")},
			Effect{Throttled: true}},
	} {
		if diff := cmp.Diff(c.want, FirstEffect(c.throttles, c.touches, before)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}
