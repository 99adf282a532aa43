package meter

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/hint"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/requests"
	"plimsoll/internal/report"
)

// RequestTimes measures beside the agent how long its containers take to answer (run --requests).
type RequestTimes struct {
	found Discoverer
	clock requests.Clock // of the agent's throttle events; nil: it polls
	log   *slog.Logger

	programs atomic.Pointer[requestPrograms] // for Throttled, which waits for no lock; nil: none are loaded

	mu      sync.Mutex
	meter   *Requests
	problem string
	minutes minutes[report.RequestWindow]
}

// NewRequestTimes measures nothing before it is run.
func NewRequestTimes(found Discoverer, clock requests.Clock, log *slog.Logger) *RequestTimes {
	return &RequestTimes{found: found, clock: clock, log: log, problem: "the programs are being loaded"}
}

// Run follows the containers until the context ends. None where requests are not measured (nil).
func (r *RequestTimes) Run(ctx context.Context) error {
	if r == nil {
		return nil
	}
	defer r.close()
	if !r.open() {
		return nil
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if err := r.turn(now); err != nil {
				r.failed(err)
				return nil // the agent does without
			}
		}
	}
}

// open loads the programs, which the agent need not wait for.
func (r *RequestTimes) open() bool {
	m, err := OpenRequests(r.clock)
	if err == nil {
		err = r.begin(m, time.Now())
	}
	if err != nil {
		r.failed(err)
	}
	return err == nil
}

// begin measures with programs that are loaded.
func (r *RequestTimes) begin(m *Requests, now time.Time) error {
	r.mu.Lock()
	r.meter, r.problem = m, ""
	r.mu.Unlock()
	if err := r.turn(now); err != nil {
		return err
	}
	if err := m.Begin(now); err != nil {
		return err
	}
	if err := m.Start(); err != nil {
		return err
	}
	r.programs.Store(&m.programs)
	return nil
}

func (r *RequestTimes) failed(err error) {
	text := hint.Line(hint.With(err, probe.Explain(err)))
	r.log.Warn("response times are not measured", "error", text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problem = text
}

func (r *RequestTimes) close() {
	r.programs.Store(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.meter == nil {
		return
	}
	if err := r.meter.Close(); err != nil {
		r.log.Warn("could not remove the programs that measure response times", "error", err)
	}
	r.meter = nil
}

// Throttled is the throttled time of the requests that a group has answered so far; nil where it is not measured.
func (r *RequestTimes) Throttled(group uint64) *time.Duration {
	p := r.programs.Load()
	if p == nil {
		return nil
	}
	c, err := (*p).Read(group)
	if err != nil || c.Withheld() || !c.ThrottledKnown() {
		return nil
	}
	return &c.Throttled
}

// turn follows the present containers, and ends the minute.
func (r *RequestTimes) turn(now time.Time) error {
	pods, err := r.found.Pods()
	if err != nil {
		return nil //nolint:nilerr // the next time
	}
	groups := map[string]uint64{}
	for _, p := range pods {
		for _, c := range p.Containers {
			groups[c.Path] = c.Inode
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.meter.Follow(groups, now); err != nil {
		return err
	}
	if !r.minutes.over(now) {
		return nil
	}
	r.minutes.of = map[string]report.RequestWindow{}
	for path := range groups {
		one, err := r.meter.Of(path, now)
		if err != nil {
			return err
		}
		r.minutes.of[path] = one.RequestWindow
	}
	return r.meter.Begin(now)
}

// Minute is what each group answered in a minute that has just ended; nil where that is not known. It is read only.
func (r *RequestTimes) Minute(start time.Time) map[string]report.RequestWindow {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.minutes.ended(start)
}

// Report lays what was measured over a status.
func (r *RequestTimes) Report(s *report.Status) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Requests = &report.RequestTimes{Problem: r.problem}
	if r.problem != "" || r.meter == nil {
		return
	}
	s.Requests.Untraced = r.meter.programs.Untraced()
	for i := range s.Containers {
		path := s.Containers[i].Cgroup
		one, err := r.meter.Of(path, s.Now)
		if err != nil {
			s.Requests.Problem = err.Error()
			return
		}
		if one == nil {
			continue // a pod, or one that came this second
		}
		if last, ok := r.minutes.of[path]; ok {
			one.RequestWindow = last
		}
		s.Containers[i].Requests = one
	}
}

// Beside are the measurements that run beside an agent; nil: it was not asked for.
type Beside struct {
	Waits    *Waits
	Requests *RequestTimes
}

// Report lays what was measured over a status.
func (b Beside) Report(s *report.Status) {
	b.Waits.Report(s)
	b.Requests.Report(s)
}

// minutes has what groups did in the last minute of the clock. The first one is shorter.
type minutes[T any] struct {
	present, last time.Time
	of            map[string]T // in the last; not changed once it is here
}

// over says whether the present minute is over, and begins the next.
func (m *minutes[T]) over(now time.Time) bool {
	minute := now.Truncate(time.Minute)
	if minute.Equal(m.present) {
		return false
	}
	first := m.present.IsZero()
	m.last, m.present = m.present, minute
	return !first
}

// ended is the minute that began then, if it has just ended; else nil.
func (m *minutes[T]) ended(start time.Time) map[string]T {
	if !start.Equal(m.last) {
		return nil
	}
	return m.of
}
