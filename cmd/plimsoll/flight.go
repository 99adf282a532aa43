package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"plimsoll/internal/cpu"
	"plimsoll/internal/flight"
	"plimsoll/internal/flight/disk"
	"plimsoll/internal/report"
)

// recordFolder is where the flight recorder writes without --record-dir.
const recordFolder = "/var/lib/plimsoll"

// flightFlags are those of the flight recorder.
type flightFlags struct {
	dir      string
	megabyte int64
	age      time.Duration
}

func (f *flightFlags) register(flags *pflag.FlagSet) {
	recordDirFlag(flags, &f.dir, `; "" for no record`)
	flags.Int64Var(&f.megabyte, "record-mb", disk.DefaultBytes>>20, "megabytes that the record may take; the oldest part of it goes")
	flags.DurationVar(&f.age, "record-age", disk.DefaultAge, "how long the record is kept")
}

func recordDirFlag(flags *pflag.FlagSet, dir *string, more string) {
	flags.StringVar(dir, "record-dir", recordFolder, "folder of the record of all containers' periods (docs/RECORD.md), below --state-dir where that is given"+more)
}

// recordDir is the folder of an agent with this state directory: two agents do not share one.
func (g *globals) recordDir(dir string) string {
	if dir == recordFolder && g.stateDir != defaultStateDir {
		return filepath.Join(g.stateDir, "record")
	}
	return dir
}

func (f *flightFlags) check() error {
	if f.dir != "" && (f.megabyte < 1 || f.age < time.Minute) {
		return withHint(misusef("--record-mb %d and --record-age %s: at least 1, and a minute", f.megabyte, f.age), `--record-dir "" turns the record off`)
	}
	return nil
}

// flightRecorder takes periods out of the kernel's ring, and gives each minute of them to the writer.
type flightRecorder struct {
	source     flightSource
	containers func() []report.Container
	writer     *disk.Writer
	dir        string
	log        *slog.Logger

	mu    sync.Mutex
	fault string // why there are no periods
	lost  int64
}

// flightSource is where periods come from.
type flightSource interface {
	Fly(on bool) error
	Flown(list []flight.Period) ([]flight.Period, int64, error)
}

const (
	flyEvery    = 500 * time.Millisecond // the kernel's ring has room for 1,300 groups that are never idle
	knowEvery   = time.Minute
	strayEvery  = 10 * time.Second // names are asked for again where there is a group without one
	lastMinutes = 3 * time.Second  // for the disk, as the agent ends
)

// newFlightRecorder is nil where nothing is to be recorded.
func (f *flightFlags) newFlightRecorder(g *globals, source flightSource, containers func() []report.Container, log *slog.Logger) *flightRecorder {
	if f.dir == "" {
		return nil
	}
	o := disk.Options{Dir: g.recordDir(f.dir), MaxBytes: f.megabyte << 20, MaxAge: f.age}
	return &flightRecorder{source: source, containers: containers, writer: disk.NewWriter(o, time.Now, log), dir: o.Dir, log: log}
}

// run records until the context ends. It never ends the agent.
func (r *flightRecorder) run(ctx context.Context) error {
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
func (r *flightRecorder) collect(ctx context.Context) {
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
			r.log.Warn("the record of the containers' periods ends", "error", err)
			r.note(before, err.Error())
			ended = true
		}
		// Where nothing runs, nothing has to be known.
		if since := now.Sub(known); len(list) > 0 && (since > knowEvery || since < 0) || b.Strays() > 0 && since > strayEvery {
			b.Know(knownFrom(r.containers()))
			known = now
		}
		r.writer.Drop(b.Add(list))
		if batch, ok := b.Close(now, ended); ok {
			batch.Lost, before = max(0, lost-before), lost
			r.note(lost, "")
			r.writer.Offer(batch)
		}
	}
}

func (r *flightRecorder) note(lost int64, fault string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost, r.fault = lost, fault
}

// status is nil where nothing is to be recorded.
func (r *flightRecorder) status() *report.Flight {
	if r == nil {
		return nil
	}
	s := r.writer.State()
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &report.Flight{Dir: r.dir, Files: s.Files, Bytes: s.Bytes, Written: s.Written, Dropped: s.Dropped, Lost: r.lost, Damaged: s.Damaged, Fault: s.Problem}
	if r.fault != "" {
		f.Fault = r.fault
	}
	return f
}

// knownFrom is what the recorder has to know of groups. The pod around containers has no rows: theirs say all.
func knownFrom(list []report.Container) map[string]flight.Known {
	out := make(map[string]flight.Known, len(list))
	for i := range list {
		c := &list[i]
		k := flight.Known{Period: c.Period, Skip: c.Level == "pod"}
		if c.Limit != cpu.Unlimited {
			k.Limit = c.Limit
		}
		k.Namespace, k.Pod, k.Container = c.Names()
		out[c.Cgroup] = k
	}
	return out
}
