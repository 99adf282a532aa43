package config

import (
	"errors"
	"fmt"
	"strings"

	"plimsoll/internal/spelling"
	"plimsoll/internal/strategy"
)

// Error is a fault in the configuration and the place where it stands.
type Error struct {
	File  string // "" for a flag
	Line  int    // the first line is 1; 0 for a flag
	Field string // "overrides[2].cgroup"; "" when the text as a whole is at fault
	Msg   string
	Hint  string // what to do about it; may be empty
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		fmt.Fprintf(&b, "%s:%d: ", e.File, e.Line)
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Msg)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Errors are all faults of a configuration, in the order of the file.
type Errors []*Error

// mostErrors bounds how many errors are listed: the first ones suffice for a file that belongs to another program.
const mostErrors = 50

// Error has one fault a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lists the faults.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i, one := range e {
		list[i] = one
	}
	return list
}

// collect makes one list of what a reader joined.
func collect(err error) error {
	var list Errors
	var walk func(error)
	walk = func(err error) {
		switch e := err.(type) {
		case *Error:
			list = append(list, e)
		case interface{ Unwrap() []error }:
			for _, one := range e.Unwrap() {
				walk(one)
			}
		}
	}
	walk(err)
	if n := len(list) - mostErrors; n > 0 {
		next := list[mostErrors]
		list = append(list[:mostErrors], &Error{File: next.File, Line: next.Line,
			Msg: fmt.Sprintf("%d more errors from here on", n)})
	}
	return list
}

// setField sets a field and checks it. A bad value is taken back, so that the fields after it are not blamed for it.
func setField[T any](to *T, value T, check func() *fault) *fault {
	old := *to
	*to = value
	f := check()
	if f != nil {
		*to = old
	}
	return f
}

// fault is an Error that does not yet know where it stands.
type fault struct{ msg, hint string }

func faultf(hint, format string, args ...any) *fault {
	return &fault{fmt.Sprintf(format, args...), hint}
}

func (f *fault) at(file string, line int, field string) *Error {
	return &Error{File: file, Line: line, Field: field, Msg: f.msg, Hint: f.hint}
}

// checkStrategy finds the field that is out of range; text is what was written there.
func checkStrategy(p strategy.Patch, text string) *fault {
	hint := ""
	if p.Policy != nil && text != "" {
		hint = didYouMean(text, []string{string(strategy.None), string(strategy.CPUBurstOnly),
			string(strategy.CFSQuotaBurstOnly),
			string(strategy.Auto)})
	}
	return faultOf(p.Check(), hint)
}

// faultOf is the fault of a value that was checked, nil where it is good.
func faultOf(err error, hint string) *fault {
	if err == nil {
		return nil
	}
	var fe *strategy.FieldError
	if errors.As(err, &fe) {
		return &fault{fe.Msg, hint}
	}
	return &fault{err.Error(), hint}
}

// longestWord is far above every word that there is to mean. The search takes a time in proportion to the length.
const longestWord = 64

// nearest is the word that is nearest to what was written, or "" when none is near.
func nearest(written string, words []string) string {
	if len(written) > longestWord {
		return ""
	}
	best, distance := "", len(written)/3+1
	for _, w := range words {
		if d := spelling.Distance(strings.ToLower(written), strings.ToLower(w)); d <= distance &&
			(best == "" || d < distance) {
			best, distance = w, d
		}
	}
	return best
}

// didYouMean names the nearest word, or nothing when none is near.
func didYouMean(written string, words []string) string {
	best := nearest(written, words)
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}
