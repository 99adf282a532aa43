// Package recorder takes the groups' periods out of the kernel's ring, for the page and for the flight recorder, and
// gives the flight recorder's to disk, a minute at a time.
//
// Approach: Periods has the kernel record while one of its two readers wants that, and gives each reader every period,
// with the refills that were written in it. Recorder is the reader that writes. It never keeps the agent from its work:
// what its disk is too slow for is counted and dropped.
package recorder

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/flight"
	"plimsoll/internal/flight/disk"
	"plimsoll/internal/report"
)

// Recorder takes periods out of the kernel's ring, and gives each minute of them to the writer.
type Recorder struct {
	source     Source
	containers func() []report.Container
	writer     *disk.Writer
	dir        string
	log        *slog.Logger

	// Requests gives those that each group answered in a minute, and Waits what it waited for; nil: not measured.
	Requests func(minute time.Time) map[string]report.RequestWindow
	Waits    func(minute time.Time) map[string]report.Waited

	mu    sync.Mutex
	fault string // why there are no periods
	lost  int64
}

// Source is where periods come from.
type Source interface {
	Fly(on bool) error
	Flown(list []flight.Period) ([]flight.Period, int64, error)
}

const (
	flyEvery    = 500 * time.Millisecond // the kernel's ring has room for 1,300 groups that are never idle
	strayEvery  = 10 * time.Second       // names are asked for within a minute where there is a group without one
	lastMinutes = 3 * time.Second        // for the disk, as the agent ends
)

// New records into a folder. Containers are those whose periods are named.
func New(o disk.Options, source Source, containers func() []report.Container, log *slog.Logger) *Recorder {
	return &Recorder{source: source, containers: containers, writer: disk.NewWriter(o, time.Now, log), dir: o.Dir,
		log: log}
}

// Run records until the context ends. It never ends the agent.
func (r *Recorder) Run(ctx context.Context) error {
	if r == nil {
		return nil
	}
	if err := r.source.Fly(true); err != nil {
		r.log.Info("no record of the containers' periods is written", "why", err)
		r.note(0, err.Error())
		return nil
	}
	writing, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.writer.Run(writing)
	}()
	r.collect(ctx)
	_ = r.source.Fly(false) // it could be turned on
	end()
	select {
	case <-done:
	case <-time.After(lastMinutes): // a disk that hangs does not keep the agent
	}
	return nil
}

// collect gives minutes to the writer until the context ends.
func (r *Recorder) collect(ctx context.Context) {
	b := flight.NewBuilder(time.Now())
	tick := time.NewTicker(flyEvery)
	defer tick.Stop()
	var known time.Time
	var list []flight.Period
	var before int64
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		now := time.Now()
		var lost int64
		var err error
		if list, lost, err = r.source.Flown(list[:0]); err != nil {
			if !errors.Is(err, os.ErrClosed) { // the agent ends, and its programs end before the record
				r.log.Warn("the record of the containers' periods ends", "error", err)
				r.note(before, err.Error())
			}
			ended, lost = true, before
		}
		// Where nothing runs, nothing has to be known.
		since := now.Sub(known)
		if b.Ends(now, ended) || len(list) > 0 && known.IsZero() ||
			b.Strays() > 0 && (since > strayEvery || since < 0) {
			b.Know(KnownFrom(r.containers()))
			known = now
		}
		r.writer.Drop(b.Add(list))
		if batch, ok := b.Close(now, ended); ok {
			batch.Lost, before = max(0, lost-before), lost
			r.measured(batch.Rows)
			if err == nil {
				r.note(lost, "")
			}
			r.writer.Offer(batch)
		}
	}
}

// measured adds to each row what is measured beside its periods.
func (r *Recorder) measured(rows []flight.Minute) {
	for i := range rows {
		m := &rows[i]
		minute := time.UnixMilli(m.Start)
		if r.Requests != nil {
			if w, measured := r.Requests(minute)[m.Cgroup]; measured {
				m.Requests = requestsOf(w)
			}
		}
		if r.Waits != nil {
			if w, measured := r.Waits(minute)[m.Cgroup]; measured {
				m.Waits = waitsOf(w)
			}
		}
	}
}

func waitsOf(w report.Waited) *flight.Waits {
	x := &flight.Waits{Wanted: w.Wanted.Microseconds(), Received: w.Received.Microseconds()}
	columns := x.Causes()
	for _, one := range w.Waits {
		if column := columns[string(one.Cause)]; column != nil {
			*column = one.Time.Microseconds()
		}
	}
	return x
}

func requestsOf(w report.RequestWindow) *flight.Requests {
	q := &flight.Requests{Answered: w.Answered, Doubtful: w.Doubtful, P50Us: -1, P90Us: -1, P99Us: -1,
		UnthrottledP99Us: -1, ResponseUs: -1, ThrottledUs: -1}
	if w.Withheld || w.Answered == 0 {
		return q
	}
	r := w.Response
	q.P50Us, q.P90Us, q.P99Us = r.P50.Microseconds(), r.P90.Microseconds(), r.P99.Microseconds()
	q.ResponseUs = w.Time.Microseconds()
	if w.ThrottledKnown {
		q.UnthrottledP99Us, q.ThrottledUs = w.Unthrottled.P99.Microseconds(), w.Throttled.Microseconds()
	}
	return q
}

func (r *Recorder) note(lost int64, fault string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost, r.fault = lost, fault
}

// Status is nil where nothing is to be recorded.
func (r *Recorder) Status() *report.Flight {
	if r == nil {
		return nil
	}
	s := r.writer.State()
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &report.Flight{Dir: r.dir, Files: s.Files, Bytes: s.Bytes, Written: s.Written, Dropped: s.Dropped,
		Lost: r.lost, Damaged: s.Damaged, Fault: s.Problem}
	if r.fault != "" {
		f.Fault = r.fault
	}
	return f
}

// KnownFrom is what the recorder has to know of groups.
func KnownFrom(list []report.Container) map[string]flight.Known {
	out := make(map[string]flight.Known, len(list))
	for i := range list {
		c := &list[i]
		k := flight.Known{Period: c.Period}
		if c.Limit != cpu.Unlimited {
			k.Limit = c.Limit
		}
		k.Namespace, k.Pod, k.Container = c.Names()
		out[c.Cgroup] = k
	}
	return out
}
