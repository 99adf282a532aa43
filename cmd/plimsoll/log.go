package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/logqueue"
	"plimsoll/internal/printable"
	"plimsoll/internal/ratelimit"
	"plimsoll/internal/report"
)

// logFlags are those of a command that runs until it is stopped.
type logFlags struct {
	verbose bool
	format  string
	flags   string // for the commands that it names
}

// called gives the commands in a message or a hint their flags.
func (f *logFlags) called(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindString {
		a.Value = slog.StringValue(report.Called(a.Value.String(), f.flags))
	}
	return a
}

// register adds the flags. verbose says what -v logs.
func (f *logFlags) register(flags *pflag.FlagSet, verbose string) {
	flags.BoolVarP(&f.verbose, "verbose", "v", false, verbose)
	flags.StringVar(&f.format, "log-format", "text", "format of the log on standard error: text or json")
}

// logger writes lines for people, or objects for log collectors.
func (f *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if f.flags != "" {
		o.ReplaceAttr = f.called
	}
	if f.verbose {
		o.Level = slog.LevelDebug
	}
	switch f.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(printable.JSON(w), o)), nil
	}
	return nil, withHint(misusef("--log-format %q is not known", f.format), "text, json")
}

// logLines are the bounds of the agent's log.
type logLines struct {
	*ratelimit.Lines
	queue *logqueue.Queue
	log   *slog.Logger
}

// agentLog is the log of a running agent. It never waits for its reader, names containers, and bounds the lines about
// one object and about all of them: whoever owns an object chooses how often there is something to say about it. In its
// first minute on a full node the agent has a line or two about each container.
func agentLog(log *slog.Logger, queue *logqueue.Queue, found *cgroupfs.Scanner) (*slog.Logger, *logLines) {
	lines := ratelimit.NewLines(ratelimit.Rate{Burst: 20, Every: 30 * time.Second},
		ratelimit.Rate{Burst: 500, Every: 100 * time.Millisecond})
	log = slog.New(lines.Over(queue.Over(logqueue.Named(log.Handler(), found.NameOf))))
	return log, &logLines{lines, queue, log}
}

// Dropped is the number of lines that are not in the log, since the start.
func (l *logLines) Dropped() int64 { return l.Lines.Dropped() + l.queue.Dropped() }

func (l *logLines) serve(ctx context.Context) error {
	l.Run(ctx, l.log)
	return nil
}
