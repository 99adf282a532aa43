package report

import (
	"fmt"
	"time"
)

// Scheduler is Plimsoll's own scheduler, which mechanism schedExt loads. Its counts of periods, throttles and bursts
// are part of each container's.
type Scheduler struct {
	InForce bool          `json:"in_force"`        // it runs all tasks
	Since   *time.Time    `json:"since,omitempty"` // since when
	Stall   time.Duration `json:"stall_ns"`        // for which the load stopped all tasks
	Loads   int64         `json:"loads"`           // times that a load was tried
	Groups  int           `json:"groups"`          // groups with a class
	// it keeps offline tasks from running beside online ones on a core
	Expel        bool    `json:"expel"`
	FloorPercent float64 `json:"floor_percent"` // what offline work gets of a CPU that online work fills
	// after so long without running a task that waits, the kernel ends it
	WatchdogSeconds int64  `json:"watchdog_seconds"`
	Ended           string `json:"ended,omitempty"`   // why it is not in force any more
	Problem         string `json:"problem,omitempty"` // what is wrong, in words
	// over all CPUs, and over the schedulers that were loaded one after the other
	Totals SchedulerTotals `json:"totals"`
}

// SchedulerTotals are sums over all CPUs, and over the schedulers that were loaded one after the other.
type SchedulerTotals struct {
	Online  time.Duration `json:"online_ns"`  // CPU time of online tasks, and of those that are neither
	Offline time.Duration `json:"offline_ns"` // CPU time of offline tasks
	Floor   time.Duration `json:"floor_ns"`   // of the offline time: given although online tasks waited
	Floors  int64         `json:"floors"`     // times that it was given
	Beside  time.Duration `json:"beside_ns"`  // of the offline time: beside an online task on the same core
	Kicks   int64         `json:"kicks"`      // offline tasks that had to go at once
	Expels  int64         `json:"expels"`     // of these: for an online task on another thread of the core
}

// Plus adds the totals of another scheduler.
func (t SchedulerTotals) Plus(o SchedulerTotals) SchedulerTotals {
	return SchedulerTotals{Online: t.Online + o.Online, Offline: t.Offline + o.Offline, Floor: t.Floor + o.Floor,
		Floors: t.Floors + o.Floors, Beside: t.Beside + o.Beside, Kicks: t.Kicks + o.Kicks, Expels: t.Expels + o.Expels}
}

// line is "scheduler in force since 12:00:00, stall 1.2ms; it enforces quotas and bursts, and none is raised;
// offline ...".
func (s *Scheduler) line() string {
	line := fmt.Sprintf("scheduler not in force after %s (%s)", several(s.Loads, "load"), s.Problem)
	if s.InForce {
		line = fmt.Sprintf("scheduler in force since %s, stall %s; it enforces quotas and bursts, and none is raised",
			clock(*s.Since), span(s.Stall))
	}
	return line + "; " + s.Totals.line()
}

// line is "offline had to yield 12 times (2 to a core's other thread), was given a floor 5 times, 20ms in all, and ran
// 1ms beside online".
func (t SchedulerTotals) line() string {
	return fmt.Sprintf("offline had to yield %s (%d to a core's other thread), was given a floor %s, %s in all, and "+
		"ran %s beside online on a core",
		several(t.Kicks, "time"), t.Expels, several(t.Floors, "time"), span(t.Floor), span(t.Beside))
}

func schedulerMetrics() []metric[Scheduler] {
	c := func(name, help string, value func(SchedulerTotals) float64) metric[Scheduler] {
		return counter("scheduler_"+name, help, nil, func(s Scheduler) float64 { return value(s.Totals) })
	}
	return []metric[Scheduler]{
		gauge("scheduler_in_force", "1 while the scheduler of mechanism schedExt runs all tasks.", nil,
			func(s Scheduler) float64 { return bit(s.InForce) }),
		counter("scheduler_loads_total", "Attempts to load the scheduler of mechanism schedExt.", nil,
			func(s Scheduler) float64 { return float64(s.Loads) }),
		c("online_seconds_total", "CPU time of online tasks, and of tasks that are neither online nor offline.",
			func(t SchedulerTotals) float64 { return t.Online.Seconds() }),
		c("offline_seconds_total", "CPU time of offline tasks.",
			func(t SchedulerTotals) float64 { return t.Offline.Seconds() }),
		c("floor_seconds_total", "CPU time given to offline tasks although online ones waited.",
			func(t SchedulerTotals) float64 { return t.Floor.Seconds() }),
		c("floors_total", "Times that offline tasks were given CPU time although online ones waited.",
			func(t SchedulerTotals) float64 { return float64(t.Floors) }),
		c("beside_seconds_total", "CPU time of offline tasks beside an online one on the same core.",
			func(t SchedulerTotals) float64 { return t.Beside.Seconds() }),
		c("forced_yields_total", "Times that an offline task had to yield at once to an online one.",
			func(t SchedulerTotals) float64 { return float64(t.Kicks) }),
		c("expels_total",
			"Times that an offline task had to yield at once to an online one on the other thread of its core.",
			func(t SchedulerTotals) float64 { return float64(t.Expels) }),
	}
}

// scheduler is nil where none was wanted.
func (s Status) scheduler() *Scheduler {
	if s.Colocation == nil {
		return nil
	}
	return s.Colocation.Scheduler
}
