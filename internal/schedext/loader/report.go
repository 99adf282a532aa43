package loader

import (
	"errors"
	"fmt"
	"io"
	"time"

	"plimsoll/internal/scx"
)

// Schema names the format of `plimsoll sched status --json` and of `plimsoll sched check --json`.
const Schema = "plimsoll.sched/v1"

// Report is `plimsoll sched status`.
type Report struct {
	Schema string `json:"schema"`
	scx.Status
}

// Text writes it for people.
func (r Report) Text(w io.Writer) error {
	line := fmt.Sprintf("sched_ext: %s", r.State.State)
	if r.Ops != "" {
		line += ": " + r.Ops
	}
	if r.PID != 0 {
		line += fmt.Sprintf(", loaded by process %d since %s\n%s, at try %d", r.PID, r.Since.Format(time.RFC3339),
			Stall(r.Stall), r.Tries)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// InForce says which scheduler is in force, also where another program has loaded it.
func InForce(stateDir string) (r Report, err error) {
	r.Schema = Schema
	if r.Status, err = Status(stateDir); errors.Is(err, ErrNotLoaded) {
		r.Status.State, err = scx.ReadState()
	}
	return r, err
}

// Findings is `plimsoll sched check`.
type Findings struct {
	Schema   string        `json:"schema"`
	Name     string        `json:"name"`     // of the scheduler
	Findings []scx.Finding `json:"findings"` // a check each
}

// Text writes it for people.
func (r Findings) Text(w io.Writer) error {
	for _, f := range r.Findings {
		word := "ok"
		if !f.OK {
			word = "NO"
		}
		if _, err := fmt.Fprintf(w, "%-11s %s  %s\n", f.Check, word, f.Detail); err != nil {
			return err
		}
	}
	return nil
}

// Check says whether a scheduler can be loaded here, and changes nothing.
func Check(o *scx.Object) Findings {
	return Findings{Schema: Schema, Name: o.Name, Findings: scx.Preflight(o)}
}

// Err is an error where something stands in the way.
func (r Findings) Err() error {
	if o := (scx.Obstacle{Findings: r.Findings}); o.Any() {
		return o
	}
	return nil
}
