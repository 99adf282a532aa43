// Package loader loads Plimsoll's own sched_ext scheduler for the agent.
package loader

import (
	"errors"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/probe"
	"plimsoll/internal/report"
	"plimsoll/internal/schedext"
	"plimsoll/internal/scx"
)

// Schedulers loads Plimsoll's own scheduler for the agent. The kernel takes long to check the programs, and the
// agent must go on meanwhile: so a goroutine loads them. Only the agent's turns call it.
type Schedulers struct {
	found     chan Finding // of a preflight under way
	opened    chan opening // of a load under way
	cancelled chan error   // of a load under way whose scheduler is closed at once
}

// Finding says whether the scheduler can be loaded here, and why.
type Finding struct {
	Usable bool
	Why    string
}

type opening struct {
	scheduler *scx.Scheduler
	err       error
}

var errSchedulerWithoutEvents = errors.New("this kernel does not report new quotas and bursts to schedulers " +
	"(mainline does since 6.17, ddceadce63d9)")

// Preflight says whether the scheduler can be loaded here.
func Preflight() Finding {
	if err := scx.Usable(); err != nil {
		return Finding{Why: err.Error()}
	}
	return Finding{true, "a scheduler of our own can be loaded"}
}

// Overruled names the scheduler that runs all tasks; "" where the kernel's own does.
func Overruled() string {
	if s, err := scx.ReadState(); err == nil && s.Overrules() {
		return s.Ops
	}
	return ""
}

func (s *Schedulers) Preflight() (usable bool, why string, err error) {
	if s.found == nil {
		s.found = make(chan Finding, 1)
		go func() { s.found <- Preflight() }()
	}
	select {
	case f := <-s.found:
		s.found = nil
		return f.Usable, f.Why, nil
	default:
		return false, "", schedext.ErrNotYet
	}
}

func (s *Schedulers) Open(o schedext.Options) (schedext.Scheduler, error) {
	if s.cancelled != nil {
		select {
		case err := <-s.cancelled:
			if s.cancelled = nil; err != nil {
				return nil, err
			}
		default:
			return nil, schedext.ErrNotYet
		}
	}
	if s.opened == nil {
		s.opened = make(chan opening, 1)
		go func() {
			opened, err := scx.Open(scx.Options{Expel: o.Expel, Floor: o.FloorPercent / 100,
				Watchdog: time.Duration(o.WatchdogSeconds) * time.Second})
			s.opened <- opening{opened, err}
		}()
	}
	select {
	case o := <-s.opened:
		s.opened = nil
		switch {
		case o.err != nil:
			return nil, o.err
		case !o.scheduler.LearnsLimits:
			_, err := o.scheduler.Close()
			return nil, errors.Join(errSchedulerWithoutEvents, err)
		}
		return ownScheduler{o.scheduler}, nil
	default:
		return nil, schedext.ErrNotYet
	}
}

// Cancel leaves a load under way to a goroutine: the kernel cannot be interrupted. The next Open waits for its end.
func (s *Schedulers) Cancel() {
	if s.opened == nil {
		return
	}
	opened, cancelled := s.opened, make(chan error, 1)
	s.opened, s.cancelled = nil, cancelled
	go func() {
		var err error
		if o := <-opened; o.err == nil { // else nothing was loaded
			_, err = o.scheduler.Close()
		}
		cancelled <- err
	}()
}

// ownScheduler is a scheduler in force, with the interface that the agent needs.
type ownScheduler struct{ *scx.Scheduler }

func (s ownScheduler) Set(group uint64, to schedext.Side) error {
	class := scx.Online
	if to.Offline {
		class = scx.Offline
	}
	return s.Scheduler.Set(group, scx.Setting{Class: class, Expels: to.Expels})
}

// Ended says why it is no longer in force.
func (s ownScheduler) Ended() (string, error) {
	alive, err := s.Alive()
	if alive || err != nil {
		return "", err
	}
	exit, err := s.Exit()
	switch {
	case err != nil:
		return "", err
	case exit.Message != "":
		return exit.Reason + ": " + exit.Message, nil
	case exit.Reason != "":
		return exit.Reason, nil
	}
	return "the kernel has ended it", nil
}

// Counters are those of a group. Its throttled time is that of the group, not of its CPUs.
func (s ownScheduler) Counters(group uint64) cpu.Counters {
	g, err := s.Group(group)
	if err != nil {
		return cpu.Counters{} // the group is gone
	}
	return cpu.Counters{Periods: g.Periods, Throttled: g.Throttled, ThrottledTime: g.Wall, Bursts: g.Bursts,
		BurstTime: g.BurstTime}
}

func (s ownScheduler) Totals() (schedext.Totals, bool) {
	t, err := s.Scheduler.Totals()
	return schedext.Totals{Online: t.Online, Offline: t.Offline, Floor: t.Floor, Floors: t.Floors, Beside: t.Beside,
		Kicks: t.Yields + t.Expels, Expels: t.Expels}, err == nil
}

// Throttles are those of a group, as those of the probe.
func (s ownScheduler) Throttles(group uint64) report.Throttles {
	t, err := s.Scheduler.Throttles(group)
	if err != nil {
		return report.Throttles{} // the group is gone
	}
	return Throttles(t)
}

// Changed names the groups with an event since the last call. The contents of the events are in their totals.
func (s ownScheduler) Changed() []uint64 {
	events, _ := s.Scheduler.Changes() // what cannot be read is in the totals all the same
	groups := make([]uint64, len(events))
	for i, e := range events {
		groups[i] = e.Group
	}
	return groups
}

func (s ownScheduler) Stall() time.Duration { return s.Scheduler.Stall.Longest }

func (s ownScheduler) Close() error {
	_, err := s.Scheduler.Close()
	return err
}

var _ schedext.Loader = (*Schedulers)(nil)

// Throttles converts totals for the agent.
func Throttles(t probe.Totals) report.Throttles {
	r := report.Throttles{Begun: t.Begins, Ended: t.Ends, Unreported: t.Dropped, Wall: t.Wall, Foreseen: t.Aheads,
		Last: t.Used, Peak: t.Peak, Second: t.Second, Usage: t.Sum, Counted: t.Counted, Above: t.Above}
	bounded, classes := t.Lengths[:probe.Buckets-1], 0 // the last class has no end
	for _, n := range bounded {
		if n > 0 {
			classes++
		}
	}
	r.Lengths = make([]report.Length, 0, classes) // it is made for each group in each status
	for i, n := range bounded {
		if n > 0 {
			r.Lengths = append(r.Lengths, report.Length{UpTo: time.Microsecond << (i + 1), N: n})
		}
	}
	return r
}
