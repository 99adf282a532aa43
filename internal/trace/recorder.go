package trace

import (
	"context"
	"fmt"
	"time"

	"plimsoll/internal/cpu"
)

// Source is a container that can be recorded.
type Source struct {
	Name  string
	Limit float64 // CPUs, as the recording begins; +Inf: none
	// LimitNow reads the limit during the recording; nil: not read. A limit that appears hides demand, as does one that
	// was there from the begin.
	LimitNow func() (float64, error)
	// Read returns the CPU time that the container has used since it began, and the time for which its CPUs were
	// throttled.
	Read func() (used, throttled time.Duration, err error)
}

// Recorder records several containers on one clock.
type Recorder struct {
	Period   time.Duration
	CPUs     float64 // of the machine
	Sources  []Source
	Now      func() time.Time
	Wait     func(ctx context.Context, until time.Time) error
	Progress func(done int) // called after each reading; nil: not called
	// Edge is an instant at which a period of the container's own limit begins; zero: not known. Periods are recorded
	// from the next such instant on.
	Edge time.Time
	// Counters are the kernel's of that container; nil without an Edge. They include a throttle when it has ended on
	// all CPUs, each of which has to wake up for that: a reading waits for it.
	Counters func() (cpu.Counters, error)
}

// begin waits for the begin of the first period.
func (r Recorder) begin(ctx context.Context) (start time.Time, timer pulse, err error) {
	now := r.Now()
	if r.Edge.IsZero() {
		return now, timer, nil
	}
	past := now.Sub(r.Edge) % r.Period
	if past < 0 {
		past += r.Period
	}
	start = now.Add(r.Period - past)
	timer.beats = true
	if r.Counters != nil {
		if timer.Counters, err = r.Counters(); err != nil {
			return start, timer, err
		}
	}
	_, err = r.end(ctx, start, &timer)
	return start, timer, err
}

// first reads all sources as the first period begins. What it reads late is missing in that period: it begins again
// then. On a machine that is too busy all the time the reading counts as late.
func (r Recorder) first(ctx context.Context) (start time.Time, timer pulse, tracks []track, err error) {
	for range beginnings {
		if start, timer, err = r.begin(ctx); err != nil {
			return start, timer, nil, err
		}
		tracks = nil
		for _, s := range r.Sources {
			used, throttled, err := s.Read()
			if err != nil {
				return start, timer, nil, fmt.Errorf("%s: %w", s.Name, err)
			}
			at := r.Now().Sub(start)
			tracks = append(tracks, track{newGrid(r.Period, at, used), newGrid(r.Period, at, throttled)})
		}
		if r.Now().Sub(start) <= r.Period/lateAfter {
			break
		}
	}
	return start, timer, tracks, nil
}

// pulse is the state of the period timer at the last reading.
type pulse struct {
	cpu.Counters
	beats bool // it fired in the last period; without a task that runs, it does not
}

// fired says whether the timer has fired since, and the counters include the throttle that it ended.
func (p pulse) fired(now cpu.Counters) bool {
	return now.Periods > p.Periods && (now.Throttled == p.Throttled || now.ThrottledTime > p.ThrottledTime)
}

// end waits for the end of a period, and for the kernel to end it too. It says how late that was.
func (r Recorder) end(ctx context.Context, due time.Time, timer *pulse) (late time.Duration, err error) {
	for until := due; ; until = r.Now().Add(r.Period / looks) {
		if err := r.Wait(ctx, until); err != nil || r.Counters == nil {
			return 0, err
		}
		now, err := r.Counters()
		if err != nil {
			return 0, err
		}
		fired := timer.fired(now)
		if !fired && timer.beats && r.Now().Sub(due) <= r.Period/lateAfter {
			continue
		}
		*timer = pulse{now, now.Periods > timer.Periods}
		if !fired || until.Equal(due) {
			return 0, nil
		}
		return r.Now().Sub(due), nil
	}
}

const (
	// the part of a period after which a reading counts as late, and the kernel's end of it is waited for no longer
	lateAfter  = 10
	looks      = 200 // so often in a period the end is checked for
	limitsAt   = 10  // after so many readings limits are read again
	beginnings = 10  // so often a recording begins, until it does in time
)

// Run records n periods. It reads at the end of each period of a schedule that is fixed at the start; a period whose
// end passed unread is divided by the next reading. When it ends early, by its context or because a container can no
// longer be read, it returns what was recorded until then beside the error.
func (r Recorder) Run(ctx context.Context, n int) (Trace, error) {
	t := Trace{Period: r.Period, CPUs: r.CPUs}
	for _, s := range r.Sources {
		t.Series = append(t.Series, Series{Name: s.Name, Limit: s.Limit})
	}
	start, timer, tracks, err := r.first(ctx)
	if err != nil {
		return t, err
	}
	if r.Now().Sub(start) > r.Period/lateAfter {
		t.Late++
	}
	t.Aligned = !r.Edge.IsZero()
	t.Started = start.Round(0).UTC()
	end := func() Trace {
		t.limits(r.Sources)
		return t.cut(n)
	}
	for next, readings := 1, 1; t.Len() < n; readings++ {
		if readings%limitsAt == 0 {
			t.limits(r.Sources)
		}
		due := start.Add(time.Duration(next) * r.Period)
		late, err := r.end(ctx, due, &timer)
		if err != nil {
			return end(), err
		}
		missed := int(r.Now().Sub(due) / r.Period)
		t.Late += min(missed, n-next)
		if r.Now().Sub(due)%r.Period > r.Period/lateAfter {
			t.Late++
		}
		next += missed + 1
		if err := r.read(&t, tracks, start.Add(late)); err != nil {
			return end(), err
		}
		if r.Progress != nil {
			r.Progress(min(t.Len(), n))
		}
	}
	return end(), nil
}

// limits records changed limits: the lowest one hides most demand.
func (t Trace) limits(sources []Source) {
	for i, s := range sources {
		if s.LimitNow == nil {
			continue
		}
		now, err := s.LimitNow()
		if err != nil || now == s.Limit {
			continue // a container that is gone ends the recording
		}
		t.Series[i].Limit, t.Series[i].LimitChanged = min(t.Series[i].Limit, now), true
	}
}

// track follows the two counters of a container.
type track struct{ used, throttled grid }

func (r Recorder) read(t *Trace, tracks []track, start time.Time) error {
	share := 1 / (r.CPUs * float64(r.Period))
	for i, s := range r.Sources {
		used, throttled, err := s.Read()
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		at := r.Now().Sub(start)
		t.Series[i].Used = appendScaled(t.Series[i].Used, tracks[i].used.add(at, used), share)
		t.Series[i].Throttled = appendScaled(t.Series[i].Throttled, tracks[i].throttled.add(at, throttled), share)
	}
	return nil
}

func appendScaled(to, values []float64, by float64) []float64 {
	for _, v := range values {
		to = append(to, v*by)
	}
	return to
}

// cut makes all series equally long, at most n, for a reading may have failed after others were taken. Throttled time
// that never came is left out.
func (t Trace) cut(n int) Trace {
	for _, s := range t.Series {
		n = min(n, len(s.Used))
	}
	for i := range t.Series {
		s := &t.Series[i]
		s.Used = s.Used[:n]
		s.Throttled = s.Throttled[:n]
		if s.Figures().Throttled == 0 {
			s.Throttled = nil
		}
	}
	return t
}

// Sleep waits for an instant on the system's clock.
func Sleep(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
