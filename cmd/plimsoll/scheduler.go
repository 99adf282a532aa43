package main

import (
	"errors"
	"time"

	"plimsoll/internal/agent"
	"plimsoll/internal/scx"
)

// schedulers loads the scheduler of our own for the agent.
type schedulers struct{}

var errDeafScheduler = errors.New("this kernel does not tell schedulers of new quotas and bursts (it does since 6.17, ddceadce63d9)")

func (schedulers) Preflight() (usable bool, why string) {
	object, err := scx.Own(scx.Options{})
	if err != nil {
		return false, err.Error()
	}
	obstacle := scx.Obstacle{Findings: scx.Preflight(object)}
	if obstacle.Any() {
		return false, obstacle.Error()
	}
	return true, "a scheduler of our own can be loaded"
}

func (schedulers) Open(expel bool) (agent.Scheduler, error) {
	s, err := scx.Open(scx.Options{Expel: expel})
	if err != nil {
		return nil, err
	}
	if !s.HearsLimits {
		_, err := s.Close()
		return nil, errors.Join(errDeafScheduler, err)
	}
	return ownScheduler{s}, nil
}

// ownScheduler is one in force, as the agent wants it.
type ownScheduler struct{ *scx.Scheduler }

func (s ownScheduler) Set(group uint64, offline bool) error {
	class := scx.Online
	if offline {
		class = scx.Offline
	}
	return s.Scheduler.Set(group, scx.Setting{Class: class})
}

// Ended says why it is no longer in force.
func (s ownScheduler) Ended() (string, error) {
	alive, err := s.Alive()
	if alive || err != nil {
		return "", err
	}
	exit, err := s.Exit()
	switch {
	case err != nil:
		return "", err
	case exit.Message != "":
		return exit.Reason + ": " + exit.Message, nil
	case exit.Reason != "":
		return exit.Reason, nil
	}
	return "the kernel has ended it", nil
}

func (s ownScheduler) Pause() time.Duration { return s.Scheduler.Pause.Longest }

func (s ownScheduler) Close() error {
	_, err := s.Scheduler.Close()
	return err
}

var _ agent.Schedulers = schedulers{}
