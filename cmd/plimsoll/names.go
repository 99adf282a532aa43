package main

import (
	"context"
	"log/slog"
	"time"

	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/logqueue"
	"plimsoll/internal/plan"
	"plimsoll/internal/ratelimit"
)

// nameOf is what a group is called; "" where it has no name but its path.
func nameOf(found *cgroupfs.Scanner, group string) string {
	pods, _ := found.Pods() // those known before, after a failed walk
	name := ""
	for _, p := range pods {
		if p.Path == group {
			name = p.Name
		}
		for _, c := range p.Containers {
			if c.Path == group {
				name = c.Name
			}
		}
	}
	if name == group {
		return ""
	}
	return name
}

func namesOf(found *cgroupfs.Scanner, changes []plan.Change) map[string]string {
	names := map[string]string{}
	for _, c := range changes {
		if name := nameOf(found, c.Cgroup.Path); name != "" {
			names[c.Cgroup.Path] = name
		}
	}
	return names
}

// logLines are the bounds of the agent's log.
type logLines struct {
	*ratelimit.Lines
	queue *logqueue.Queue
	log   *slog.Logger
}

// agentLog is the log of a running agent. It never waits for its reader, names containers, and bounds the lines about one
// object and about all of them: whoever owns an object chooses how often there is something to say about it. In its first
// minute on a full node the agent has a line or two about each container.
func agentLog(log *slog.Logger, queue *logqueue.Queue, found *cgroupfs.Scanner) (*slog.Logger, *logLines) {
	lines := ratelimit.NewLines(ratelimit.Rate{Burst: 20, Every: 30 * time.Second}, ratelimit.Rate{Burst: 500, Every: 100 * time.Millisecond})
	log = slog.New(lines.Over(queue.Over(namesGroups{log.Handler(), func(group string) string { return nameOf(found, group) }})))
	return log, &logLines{lines, queue, log}
}

// Dropped is the number of lines that are not in the log, since the start.
func (l *logLines) Dropped() int64 { return l.Lines.Dropped() + l.queue.Dropped() }

func (l *logLines) serve(ctx context.Context) error {
	l.Run(ctx, l.log)
	return nil
}

// namesGroups is a handler of a log that adds the name of a container to each line that has its group: the path of a
// container of Docker has 78 letters, and its id is all that it says.
type namesGroups struct {
	slog.Handler
	name func(group string) string
}

func (h namesGroups) Handle(ctx context.Context, r slog.Record) error {
	name := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "cgroup" && a.Value.Kind() == slog.KindString {
			name = h.name(a.Value.String())
		}
		return name == ""
	})
	if name != "" {
		r.AddAttrs(slog.String("name", name))
	}
	return h.Handler.Handle(ctx, r)
}

func (h namesGroups) WithAttrs(attrs []slog.Attr) slog.Handler {
	return namesGroups{h.Handler.WithAttrs(attrs), h.name}
}

func (h namesGroups) WithGroup(name string) slog.Handler {
	return namesGroups{h.Handler.WithGroup(name), h.name}
}
