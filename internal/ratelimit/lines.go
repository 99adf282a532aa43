package ratelimit

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Lines bounds the lines of a log that are about one object. Such a line has an attribute "cgroup" or "object".
// Other lines, and those that only --verbose shows, always pass.
type Lines struct {
	mu       sync.Mutex
	infos    *Objects
	warnings *Objects
	total    int64
	unsaid   int64    // of total, those that Report has not told of
	about    []string // some of the objects of these
}

const (
	maxAbout    = 3 // objects that Report names
	reportEvery = time.Minute
)

// NewLines makes the bounds of a log: of each object, and of all objects together.
func NewLines(each, all Rate) *Lines {
	return &Lines{infos: NewObjects(each, &all), warnings: NewObjects(each, &all)}
}

// Over is a handler that passes on to another one what the bounds allow.
func (l *Lines) Over(next slog.Handler) slog.Handler { return handler{next, l, ""} }

// Dropped is the number of lines that were left out since the start.
func (l *Lines) Dropped() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

func (l *Lines) allow(r slog.Record, object string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	objects := l.infos
	if r.Level >= slog.LevelWarn {
		objects = l.warnings
	}
	if objects.Allow(r.Time, object) {
		return true
	}
	l.total++
	l.unsaid++
	if name := shortened(object); len(l.about) < maxAbout && !slices.Contains(l.about, name) {
		l.about = append(l.about, strings.Clone(name))
	}
	return false
}

// Report tells of the lines that were left out since it told last.
func (l *Lines) Report(log *slog.Logger) {
	l.mu.Lock()
	n, about := l.unsaid, l.about
	l.unsaid, l.about = 0, nil
	l.mu.Unlock()
	if n > 0 {
		log.Warn("lines about single objects were left out of the log: there were too many", "lines", n, "among_others",
			about,
			"hint", "`plimsoll status` shows what stands now")
	}
}

// Run reports once a minute until the context ends, and then once more.
func (l *Lines) Run(ctx context.Context, log *slog.Logger) {
	defer l.Report(log)
	again := time.NewTicker(reportEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			l.Report(log)
		}
	}
}

// handler is one of a log's handlers.
type handler struct {
	slog.Handler
	lines  *Lines
	object string // of all lines of this handler
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	object := h.object
	r.Attrs(func(a slog.Attr) bool {
		object = objectOf(a, object)
		return object == ""
	})
	if object != "" && r.Level >= slog.LevelInfo && !h.lines.allow(r, object) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	object := h.object
	for _, a := range attrs {
		object = objectOf(a, object)
	}
	return handler{h.Handler.WithAttrs(attrs), h.lines, object}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.lines, h.object}
}

// objectOf is the object that an attribute names, or the one that is known.
func objectOf(a slog.Attr, known string) string {
	if known == "" && (a.Key == "cgroup" || a.Key == "object") {
		return a.Value.String()
	}
	return known
}
