package main

import (
	"errors"

	"plimsoll/internal/hint"
	"plimsoll/internal/usage"
	"plimsoll/internal/web"
)

// The exit codes. docs/REFERENCE.md documents them.
const (
	exitFailed  = 1
	exitMisused = 2 // as of the shell's own commands
	exitNoAgent = 3
)

// exitError is an error that has an exit code of its own.
type exitError struct {
	error
	code int
}

func (e exitError) Unwrap() error { return e.error }

// misusef makes an error of the caller.
func misusef(format string, args ...any) error { return hint.Misusef(format, args...) }

// exitCode is what the process ends with after an error.
func exitCode(err error) int {
	var coded exitError
	switch {
	case errors.As(err, &coded):
		return coded.code
	case hint.Misused(err):
		return exitMisused
	case errors.Is(err, web.ErrNoAgent), errors.Is(err, web.ErrNoAnswer):
		return exitNoAgent
	case usage.UnknownCommand(err), usage.FlagMissing(err):
		return exitMisused
	}
	return exitFailed
}
