package kube

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
)

// line is the line to the API server: whether each query was answered when it was last asked.
type line struct {
	changed func(error) // told when the line breaks, and (nil) when it is whole

	mu      sync.Mutex
	queries []query
	faults  map[query]error
	state   lineState
	fault   error
}

type lineState int

const (
	untried lineState = iota // not everything was asked, and nothing failed
	whole
	broken
)

func newLine(queries []query, changed func(error)) *line {
	return &line{changed: changed, queries: queries, faults: map[query]error{}}
}

// heard books an answer. That the asker goes away is no fault of the server's.
func (l *line) answered(q query, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err // without the address and its parameters, which nobody can read
	}
	l.mu.Lock()
	l.faults[q] = err
	was := l.state
	l.state, l.fault = l.judge()
	told, fault := l.state != was && l.state != untried, l.fault
	l.mu.Unlock()
	if told {
		l.changed(fault)
	}
}

func (l *line) judge() (lineState, error) {
	for _, q := range l.queries {
		if err := l.faults[q]; err != nil {
			return broken, err
		}
	}
	if slices.ContainsFunc(l.queries, func(q query) bool { _, asked := l.faults[q]; return !asked }) {
		return untried, nil
	}
	return whole, nil
}

// now says how the line is, and what is wrong with it.
func (l *line) now() (lineState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.fault
}
