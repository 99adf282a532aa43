package experiment

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

func TestParseModes(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  []Mode
		err   string
	}{
		{[]string{"auto", " none"}, []Mode{"auto", "none"}, ""},
		{[]string{"unlimited", "unlimited again"}, []Mode{Unlimited, UnlimitedAgain}, ""},
		{[]string{"fast"}, nil,
			"is not one of unlimited, unlimited again, requestsOnly, none, cpuBurstOnly, cfsQuotaBurstOnly, auto"},
		{[]string{"none", "none"}, nil, "given twice"},
		{nil, nil, "no mode is given"},
	} {
		got, err := ParseModes(c.names)
		if c.err == "" && (err != nil || !slices.Equal(got, c.want)) || c.err != "" &&
			(err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("ParseModes(%q) = %v, %v; want %v, %q", c.names, got, err, c.want, c.err)
		}
	}
}

// TestOrder expects every mode at every place, and after every other one, equally often, and the same order again.
func TestOrder(t *testing.T) {
	for n := 2; n <= 7; n++ {
		type pair struct{ first, second int }
		modes, places, pairs := make([]int, n), map[pair]int{}, map[pair]int{}
		for i := range modes {
			modes[i] = i
		}
		for round := range 2 * n {
			order := Order(modes, 3, round)
			if again := Order(modes, 3, round); !slices.Equal(order, again) {
				t.Fatalf("round %d: %v, then %v", round, order, again)
			}
			for i, m := range order {
				places[pair{m, i}]++
				if i > 0 {
					pairs[pair{order[i-1], m}]++
				}
			}
		}
		twice := func(_ pair, times int) bool { return times == 2 }
		if maps.DeleteFunc(places, twice); len(places) > 0 {
			t.Errorf("%d modes: not twice at a place: %v", n, places)
		}
		if maps.DeleteFunc(pairs, twice); len(pairs) > 0 {
			t.Errorf("%d modes: not twice one after the other: %v", n, pairs)
		}
	}
	if slices.Equal(Order(Modes(), 3, 0), Order(Modes(), 5, 0)) {
		t.Error("another seed gives the same order")
	}
}

func TestArrivals(t *testing.T) {
	due, slot := arrivals(1, 5, 10*time.Second, 3, 0)
	if len(due) != 3 || slot != 10*time.Second || slices.Equal(due[0], due[1]) {
		t.Fatalf("%d rounds of %v", len(due), slot)
	}
	again, _ := arrivals(1, 5, 10*time.Second, 3, 0)
	if diff := cmp.Diff(due, again); diff != "" {
		t.Errorf("the same seed gives other arrivals:\n%s", diff)
	}
	due, slot = arrivals(1, 5, 10*time.Second, 3, 400)
	total := 0
	for _, d := range due {
		total += len(d)
		if d[len(d)-1] >= slot {
			t.Errorf("a request is due at %v, after the slot of %v", d[len(d)-1], slot)
		}
	}
	if total < 400 || total > 430 {
		t.Errorf("%d requests for 400", total)
	}
}

func TestConfig(t *testing.T) {
	good := Config{Limit: 0.5, Utilization: 0.45, PerMode: 30 * time.Second, Rounds: 3}
	for _, c := range []struct {
		change func(*Config)
		err    string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.Limit = 3 }, "limit 3 CPUs"},
		{func(c *Config) { c.Limit = 0 }, "limit 0 CPUs"},
		{func(c *Config) { c.Limit = math.NaN() }, "limit NaN CPUs"},
		{func(c *Config) { c.Utilization = 1 }, "utilization 100 %"},
		{func(c *Config) { c.Utilization = 0 }, "utilization 0 %"},
		{func(c *Config) { c.PerMode = time.Millisecond }, "1ms of load"},
		{func(c *Config) { c.Rounds = 31 }, "31 rounds"},
		{func(c *Config) { c.Rounds = -1 }, "-1 rounds"},
		{func(c *Config) { c.Requests = -1 }, "-1 requests"},
	} {
		bad := good
		c.change(&bad)
		err := bad.Check(2)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("Check(%+v) = %v, want %q", bad, err, c.err)
		}
	}
	open := good
	open.Rounds = 0
	if got := open.Complete().Rounds; got != 3 {
		t.Errorf("%d rounds for 30 s", got)
	}
	open.Requests, open.Work = 3000, 40*time.Millisecond
	if got := open.Complete(); got.PerMode.Round(time.Second) != 533*time.Second || got.Rounds != 27 ||
		got.Check(2) != nil {
		t.Errorf("3000 requests: %v in %d rounds", got.PerMode, got.Rounds)
	}
}

// TestAgentConfig reads the agent's configuration as the agent does: the groups of the experiment get the policy, and
// all others are left alone.
func TestAgentConfig(t *testing.T) {
	setup := Setup{Offline: &Offline{groups: &Groups{base: "/plimsoll-offline-7"}}}
	for _, m := range AllModes() {
		f, err := config.Parse("config.yaml", []byte(setup.config("/plimsoll-demo-7", m.Policy())))
		if err != nil {
			t.Fatalf("%s: %v", m, err)
		}
		want := m.Policy()
		if e := f.Resolve("/plimsoll-demo-7/web"); e.Strategy.Policy != want || !e.Matched {
			t.Errorf("%s: the group gets %+v", m, e)
		}
		if e := f.Resolve("/plimsoll-demo-77/web"); e.Strategy.Policy != strategy.None || e.Matched {
			t.Errorf("%s: another group gets %+v", m, e)
		}
		if e := f.Resolve("/plimsoll-offline-7/cpu0"); e.Strategy.Policy != strategy.None ||
			e.Class != workload.ClassBE {
			t.Errorf("%s: offline work gets %+v", m, e)
		}
	}
}

func TestShows(t *testing.T) {
	limit := Limited(0.5)
	with := func(quota, burst time.Duration) cpu.Bandwidth {
		return cpu.Bandwidth{Quota: quota, Period: limit.Period, Burst: burst}
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		policy   strategy.Policy
		b        cpu.Bandwidth
		canBurst bool
		ok       bool
	}{
		{strategy.None, with(50*ms, 0), true, true},
		{strategy.None, with(50*ms, ms), true, false},
		{strategy.None, with(60*ms, 0), true, false},
		{strategy.None, with(cpu.Unlimited, 0), true, false},
		{strategy.CPUBurstOnly, with(50*ms, 50*ms), true, true},
		{strategy.CPUBurstOnly, with(50*ms, 0), true, false},
		{strategy.CPUBurstOnly, with(50*ms, 0), false, true},
		{strategy.CPUBurstOnly, with(60*ms, 50*ms), true, false},
		{strategy.CFSQuotaBurstOnly, with(60*ms, 0), true, true},
		{strategy.CFSQuotaBurstOnly, with(50*ms, ms), true, false},
		{strategy.Auto, with(60*ms, 50*ms), true, true},
		{strategy.Auto, with(60*ms, 0), true, false},
	} {
		if err := shows(c.policy, c.b, limit, c.canBurst); (err == nil) != c.ok {
			t.Errorf("shows(%s, %+v, canBurst %v) = %v, want ok %v", c.policy, c.b, c.canBurst, err, c.ok)
		}
	}
}

// TestTurns: each mode has its turn in each round, and an error says in which.
func TestTurns(t *testing.T) {
	modes := []string{"none", "auto", "unlimited"}
	type turn struct {
		round int
		mode  string
	}
	all, err := Turns(t.Logf, 4, 1, modes, func(round int, mode string) (turn, error) { return turn{round, mode}, nil },
		func(s turn) string { return s.mode })
	if err != nil || len(all) != 12 {
		t.Fatalf("%v, %v", all, err)
	}
	for i, s := range all {
		if s.round != i/3 {
			t.Errorf("turn %d is in round %d", i, s.round)
		}
	}
	for round := range 4 {
		for _, mode := range modes {
			if !slices.Contains(all, turn{round, mode}) {
				t.Errorf("round %d has no %s", round, mode)
			}
		}
	}
	_, err = Turns(t.Logf, 4, 1, modes, func(round int, mode string) (turn, error) {
		if round == 2 && mode == "auto" {
			return turn{}, errors.New("broken")
		}
		return turn{}, nil
	}, func(turn) string { return "" })
	if err == nil || err.Error() != "auto, round 3: broken" {
		t.Errorf("%v", err)
	}
}
