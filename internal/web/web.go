// Package web lets people and programs read the agent's state, and control it, in two processes.
//
// The agent (Server) listens on two unix sockets and on no network: one to control it, for root alone, and one to read
// its state, for a group. The process that serves the network (Site: metrics, health, status) has no privileges, and
// reads from the second one. Whatever reaches that process can at most read what everybody may read who may reach it.
package web

import (
	"context"
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/report"
)

// DefaultListen is the TCP address where nothing is configured: this machine only, and a port outside the range
// 9100-9999, in which the Prometheus project has given every number to an exporter.
const DefaultListen = "127.0.0.1:12779"

// The sockets of the agent, by their names in the state directory.
const (
	ControlSocket = "control.sock" // its owner's: to control the agent
	ReadSocket    = "read.sock"    // to read its state
)

// Agent is the agent that the server reads and controls. All methods may be called at any time from any goroutine. An
// error with a method `Hint() string` carries advice for the person who asked.
type Agent interface {
	Status() report.Status
	// Glance is a Status for who asks each second: the counters of quiet containers may be older in it. It overwrites
	// the list with the containers, which are ordered by their paths.
	Glance(list []report.Container) report.Status
	// Health is the part of Status that says whether the agent lives and is ready.
	Health() report.Status
	// Hold stops all writing; with restore, everything that was written is put back first.
	Hold(ctx context.Context, restore bool, reason string) ([]plan.Result, error)
	// Retire puts everything back, and writes nothing until the agent is stopped.
	Retire(ctx context.Context) ([]plan.Result, error)
	// Resume ends a hold.
	Resume(ctx context.Context) error
	// Pause keeps a container, named by its cgroup path, at its limit for d; 0 ends that.
	Pause(ctx context.Context, container string, d time.Duration) error
	// Release puts back what would make another writer of the group's limit fail, and leaves it so for d.
	Release(ctx context.Context, cgroup string, d time.Duration) ([]plan.Result, error)
}

// Target is the unit that an argument was found to mean.
type Target struct {
	Cgroup string `json:"cgroup"`
	Name   string `json:"name"`
}

// Released is the answer to a release.
type Released struct {
	Target
	Results []plan.Result `json:"results"`
}

// Error is an error as it travels: {"error": "...", "hint": "..."}.
type Error struct {
	Msg     string `json:"error"`
	Advice  string `json:"hint,omitempty"`
	Code    int    `json:"-"` // HTTP status
	retry   time.Duration
	wrapped error
}

// ErrBusy says that too many others ask at the same time.
var ErrBusy = errors.New("the agent answers others")

func (e *Error) Error() string { return e.Msg }

// Hint is advice for the person who asked; it may be empty.
func (e *Error) Hint() string { return e.Advice }

func (e *Error) Unwrap() error { return e.wrapped }

// The bodies of control requests. Times are in Go's spelling: "30m", "1h30m".
type (
	holdRequest struct {
		Restore bool   `json:"restore"`
		Reason  string `json:"reason"`
	}
	targetRequest struct {
		Container string   `json:"container"`
		For       duration `json:"for"`
	}
)

// duration travels as text.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%.40q is not a time such as 30s or 10m", text)
	}
	*d = duration(parsed)
	return nil
}
