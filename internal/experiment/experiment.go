// Package experiment measures what Plimsoll does to a service: a real server in a real control group with a limit,
// an open-loop load, and the real agent, whose policy changes in each slot of time.
//
// Approach: the modes are interleaved in rounds, in a balanced order, so that what else happens on the machine, and
// what one mode leaves to the next, hits all alike; all modes of a round get the same arrivals; the work of a request
// is held at a known CPU time, counted by the kernel for the server's group. Between slots the load drains and the
// policy settles.
//
// Where a machine is to be full, other groups keep each of its CPUs busy with offline work: class BE, and behind all
// others (cpu.idle) where the kernel can do that. Only such work leaves the guard room to grant anything. In the mode
// requestsOnly it is ordinary work (requests.go).
//
// Known limits: the load generator and the agent run on the same machine, and their CPU time is part of what the
// guard sees. A slot begins with whatever burst the kernel lets a group save while it is idle.
package experiment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/load"
	"plimsoll/internal/strategy"
)

// Mode is a state of the world that is measured: no limit at all, nothing but requests, or the limit and a policy.
type Mode string

// Unlimited is the mode without a limit. It shows what latency the machine itself can give. UnlimitedAgain is the
// same: what differs between the two is chance. RequestsOnly has no limit either, and neither have the neighbours:
// weights alone divide the CPUs.
const (
	Unlimited      Mode = "unlimited"
	UnlimitedAgain Mode = "unlimited again"
	RequestsOnly   Mode = "requestsOnly"
)

// Modes are the modes that differ, in the order in which they are shown.
func Modes() []Mode {
	return []Mode{Unlimited, RequestsOnly, Mode(strategy.None), Mode(strategy.CPUBurstOnly),
		Mode(strategy.CFSQuotaBurstOnly), Mode(strategy.Auto)}
}

// AllModes are those that figures need.
func AllModes() []Mode { return slices.Insert(Modes(), 1, UnlimitedAgain) }

// Unlimited says whether the limit is removed in this mode.
func (m Mode) Unlimited() bool { return m == Unlimited || m == UnlimitedAgain || m == RequestsOnly }

// Policy is the agent's policy in this mode.
func (m Mode) Policy() strategy.Policy {
	if m.Unlimited() {
		return strategy.None
	}
	return strategy.Policy(m)
}

// NeedsAgent says whether some mode needs more than a write of the limit.
func NeedsAgent(modes []Mode) bool {
	return slices.ContainsFunc(modes, func(m Mode) bool { return m.Policy() != strategy.None })
}

// ParseModes reads a list of modes, in any order and once each.
func ParseModes(names []string) ([]Mode, error) { return ParseNames("mode", names, AllModes()) }

// ParseNames reads a list of some of all modes, rows or the like, in any order and once each.
func ParseNames[N ~string](what string, names []string, all []N) (list []N, err error) {
	var known []string
	for _, n := range all {
		known = append(known, string(n))
	}
	for _, name := range names {
		n := N(strings.TrimSpace(name))
		if !slices.Contains(all, n) {
			return nil, fmt.Errorf("%s %q is not one of %s", what, name, strings.Join(known, ", "))
		}
		if slices.Contains(list, n) {
			return nil, fmt.Errorf("%s %q is given twice", what, name)
		}
		list = append(list, n)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no %s is given: choose from %s", what, strings.Join(known, ", "))
	}
	return list, nil
}

// Order is the order of the modes in a round. In twice as many rounds as there are modes, each comes at each place
// twice, and after each other one equally often, so that what a mode leaves behind (warm caches, a host that takes back
// what it lent) falls on all alike: the balanced design of Williams (1949), shuffled by the seed.
func Order[M any](modes []M, seed uint64, round int) []M {
	n := len(modes)
	shuffled := slices.Clone(modes)
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	order := make([]M, n)
	for i := range order {
		order[i] = shuffled[(zigzag(i, n)+round)%n]
	}
	if round/n%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// Turns has modes take turns in rounds, in that order, and collects what each slot gave. Line tells of a slot.
func Turns[M, S any](say func(format string, args ...any), rounds int, seed uint64, modes []M,
	slot func(round int, mode M) (S, error),
	line func(S) string) ([]S, error) {
	total := rounds * len(modes)
	var all []S
	for round := range rounds {
		for _, mode := range Order(modes, seed, round) {
			s, err := slot(round, mode)
			if err != nil {
				return nil, fmt.Errorf("%v, round %d: %w", mode, round+1, err)
			}
			all = append(all, s)
			say("[%*d/%d] %s", len(fmt.Sprint(total)), len(all), total, line(s))
		}
	}
	return all, nil
}

// zigzag is place i of 0, 1, n-1, 2, n-2, ...: no two steps in it are the same (mod n).
func zigzag(i, n int) int {
	if i%2 == 1 {
		return (i + 1) / 2
	}
	return n - i/2
}

// arrivals are the times of the requests in each round, the same for all modes. Where a number of requests is asked
// for, the slots are made longer until that many fit.
func arrivals(seed uint64, rate float64, slot time.Duration, rounds, atLeast int) ([][]time.Duration, time.Duration) {
	for {
		due := make([][]time.Duration, rounds)
		total := 0
		for round := range due {
			due[round] = load.Poisson(seed, uint64(round)+1, rate, slot)
			total += len(due[round])
		}
		if total >= max(atLeast, 1) {
			return due, slot
		}
		slot += slot/50 + time.Millisecond
	}
}

// Server is what is put under load.
type Server interface {
	// Start starts the server. It gives the first process to enter before that does anything.
	Start(enter func(pid int) error) error
	// URL is what a request of a size asks for. A server with one size only ignores it.
	URL(size int) string
	Stop() error
}

// Config says what is measured and how long.
type Config struct {
	Name        string  // of the experiment: part of the groups' names
	CgroupRoot  string  // where the control groups are mounted
	Agent       string  // the plimsoll binary
	Limit       float64 // CPUs
	Utilization float64 // mean use that the load aims at, as a share of the limit
	Modes       []Mode
	PerMode     time.Duration // of load for each mode, all rounds together
	Rounds      int
	Requests    int // at least so many for each mode; 0: as many as come
	Seed        uint64
	Work        time.Duration // CPU time of a request; 0: take it as the server has it
	Loaded      bool          // offline work keeps every CPU busy meanwhile
	Version     string        // of Plimsoll, for the record
}

// Check reports the first setting that makes no sense on a machine with so many CPUs.
func (c Config) Check(cpus int) error {
	switch {
	case !(c.Limit >= 0.01 && c.Limit <= float64(cpus)):
		return fmt.Errorf("limit %g CPUs: must be from 0.01 to the %d CPUs of this machine", c.Limit, cpus)
	case c.Utilization <= 0 || c.Utilization >= 1:
		return fmt.Errorf("utilization %.0f %%: must be above 0 and below 100 %% of the limit, or requests pile up "+
			"without end", 100*c.Utilization)
	case c.PerMode < time.Second:
		return fmt.Errorf("%v of load for each mode: must be 1 s or more", c.PerMode)
	case c.Rounds < 1 || c.PerMode/time.Duration(c.Rounds) < time.Second:
		return fmt.Errorf("%d rounds in %v: must be 1 or more, of 1 s or more each", c.Rounds, c.PerMode)
	case c.Requests < 0:
		return fmt.Errorf("%d requests: must be 0 or more", c.Requests)
	}
	return nil
}

// Complete works out what was left open: enough time for the requests asked for, as far as that is known before
// the work is measured, and rounds of about 10 s, or twice as long where there are many.
func (c Config) Complete() Config {
	if c.Requests > 0 && c.Work > 0 && c.Limit > 0 && c.Utilization > 0 {
		rate := c.Limit * c.Utilization / c.Work.Seconds()
		c.PerMode = time.Duration(float64(c.Requests) / rate * float64(time.Second))
	}
	if c.Rounds == 0 {
		length := 10 * time.Second
		if c.PerMode > 20*length {
			length *= 2
		}
		c.Rounds = max(1, int((c.PerMode+length/2)/length))
	}
	return c
}
