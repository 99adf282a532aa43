package kube

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
)

// line is the connection to the API server: whether the last request of each query was answered.
type line struct {
	changed func(error) // called when the line breaks, and with nil when it is whole

	mu      sync.Mutex
	queries []query
	faults  map[query]error
	state   lineState
	fault   error
}

type lineState int

const (
	untried lineState = iota // some queries have no answer yet, and none failed
	whole
	broken
)

func newLine(queries []query, changed func(error)) *line {
	return &line{changed: changed, queries: queries, faults: map[query]error{}}
}

// answered records an answer. A request that this process cancels is no fault of the server.
func (l *line) answered(q query, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err // without the address and its parameters, which are unreadable
	}
	l.mu.Lock()
	l.faults[q] = err
	was := l.state
	l.state, l.fault = l.judge()
	changed, fault := l.state != was && l.state != untried, l.fault
	l.mu.Unlock()
	if changed {
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
