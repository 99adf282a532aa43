// Package services runs what works beside an agent: readers of files, sockets, recorders. They outlive the agent's last
// turn, in which it puts everything back, and end after it. One that fails ends the agent.
package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"
)

// Group is the services of one agent.
type Group struct {
	Agent  context.Context // ends with the first service that fails, too
	Stop   context.CancelFunc
	beside context.Context // the services'
	leave  context.CancelFunc
	Log    *slog.Logger
	group  errgroup.Group
}

// New makes a group. The agent ends with ctx, and the services with End.
func New(ctx context.Context, log *slog.Logger) *Group {
	s := &Group{Log: log}
	s.Agent, s.Stop = context.WithCancel(ctx)
	s.beside, s.leave = context.WithCancel(context.WithoutCancel(ctx))
	return s
}

// Start starts a service, which runs until its context ends.
func (s *Group) Start(name string, run func(context.Context) error) {
	s.group.Go(func() error {
		err := run(s.beside)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			s.Log.Error("a part of the agent failed", "error", err)
			s.Stop()
		}
		return err
	})
}

// End ends the services after the agent, and returns what the agent returned,
// and what went wrong first with any of them.
func (s *Group) End(err error) error {
	s.leave()
	return errors.Join(err, s.group.Wait())
}
