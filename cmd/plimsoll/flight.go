package main

import (
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"plimsoll/internal/agent"
	"plimsoll/internal/diagnose/meter"
	"plimsoll/internal/flight/disk"
	"plimsoll/internal/flight/recorder"
	"plimsoll/internal/host"
	"plimsoll/internal/node"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
)

// The flag of the record's folder, and the folder without it.
const (
	recordDirName = "record-dir"
	recordFolder  = "/var/lib/plimsoll"
)

// flightFlags are those of the flight recorder.
type flightFlags struct {
	set      *pflag.FlagSet
	dir      string
	megabyte int64
	age      time.Duration
}

func (f *flightFlags) register(flags *pflag.FlagSet) {
	f.set = flags
	recordDirFlag(flags, &f.dir, `; "" for no record`)
	flags.Int64Var(&f.megabyte, "record-mb", disk.DefaultBytes>>20,
		"megabytes that the record may take; the oldest part of it goes")
	flags.DurationVar(&f.age, "record-age", disk.DefaultAge, "how long the record is kept")
}

func recordDirFlag(flags *pflag.FlagSet, dir *string, more string) {
	flags.StringVar(dir, recordDirName, recordFolder,
		"folder of the record of all containers' periods (docs/RECORD.md), below --state-dir where only that is given"+
			more)
}

// recordDir is the folder of an agent with this state directory: two agents do not share one that nobody named.
func (g *globals) recordDir(flags *pflag.FlagSet, dir string) string {
	if !flags.Changed(recordDirName) && g.StateDir != node.DefaultStateDir {
		return filepath.Join(g.StateDir, "record")
	}
	return dir
}

func (f *flightFlags) check() error {
	if f.dir != "" && (f.megabyte < 1 || f.age < time.Minute) {
		return withHint(misusef("--record-mb %d and --record-age %s: at least 1, and a minute", f.megabyte, f.age),
			`--record-dir "" turns the record off`)
	}
	return nil
}

// newRecorder is nil where nothing is to be recorded. measured has the requests and waits of each minute.
func (f *flightFlags) newRecorder(g *globals, source recorder.Source, containers func() []report.Container,
	measured meter.Beside, log *slog.Logger) *recorder.Recorder {
	if f.dir == "" {
		return nil
	}
	r := recorder.New(disk.Options{Dir: g.recordDir(f.set, f.dir), MaxBytes: f.megabyte << 20, MaxAge: f.age}, source,
		containers, log)
	if measured.Requests != nil {
		r.Requests = measured.Requests.Minute
	}
	if measured.Waits != nil {
		r.Waits = measured.Waits.Minute
	}
	return r
}

// periodsOf is where the records of periods are from.
func periodsOf(s host.Throttles, found agent.Discoverer) *recorder.Periods {
	if s.Events == nil {
		return recorder.NewPeriods(nil, s.WhyNoPeriods(), found)
	}
	return recorder.NewPeriods(s.Events.Probe, s.WhyNoPeriods(), found)
}

// noted is the writer of an agent whose refills are noted.
type noted struct {
	agent.Writer
	periods *recorder.Periods
}

func (n noted) Do(changes []plan.Change) []plan.Result {
	results := n.Writer.Do(changes)
	n.periods.Note(results)
	return results
}
