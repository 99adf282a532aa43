// Package hint adds to an error what its reader can do about it.
//
// Problem: an error says what happened. What to do about it is known where it happens, and printed by whoever prints
// the error, on a line of its own.
//
// Approach: an error with a method `Hint() string` carries advice; With makes one of any error. An error of the caller,
// in flags or arguments, is a Misuse: a command ends with another exit code then.
package hint

import (
	"errors"
	"fmt"
	"strings"
)

// advised is an error with advice.
type advised struct {
	error
	hint string
}

func (a advised) Unwrap() error { return a.error }

// Hint is the advice.
func (a advised) Hint() string { return a.hint }

// With attaches advice to an error; "" attaches none.
func With(err error, advice string) error {
	if err == nil || advice == "" {
		return err
	}
	return advised{err, advice}
}

// Line is an error and its advice in one line, for a log or a status.
func Line(err error) string {
	var said interface{ Hint() string }
	if errors.As(err, &said) && said.Hint() != "" {
		return fmt.Sprintf("%v; hint: %s", err, said.Hint())
	}
	return err.Error()
}

// misuse is an error of the caller.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// Misuse marks an error as one of the caller.
func Misuse(err error) error {
	if err == nil {
		return nil
	}
	return misuse{err}
}

// Misusef makes an error of the caller.
func Misusef(format string, args ...any) error { return Misuse(fmt.Errorf(format, args...)) }

// Misused says whether an error is one of the caller.
func Misused(err error) bool {
	var m misuse
	return errors.As(err, &m)
}

// Word spells an argument for a shell.
func Word(arg string) string {
	if strings.Trim(arg, "/-_.:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
