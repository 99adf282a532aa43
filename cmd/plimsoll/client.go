package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/discover/index"
	"plimsoll/internal/report"
	"plimsoll/internal/web"
)

// askTimeout bounds a call that only reads, steerTimeout a call that may write to every container.
const (
	askTimeout   = 5 * time.Second
	steerTimeout = time.Minute
)

// client speaks to the agent of this state directory.
func (g *globals) client() *web.Client { return web.Dial(filepath.Join(g.StateDir, web.ControlSocket)) }

func within(cmd *cobra.Command, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(cmd.Context(), d)
}

// answers returns soon with an error when the agent, or its loop alone, hangs. A missing agent is no error, and one
// that is only slow is asked again.
func (g *globals) answers(ctx context.Context) (first error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for {
		_, err := g.client().Status(ctx)
		if !errors.Is(err, web.ErrNoAnswer) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if first == nil {
			first = err
		}
		select {
		case <-ctx.Done():
			return first
		case <-time.After(askTimeout / 50):
		}
	}
}

// killHint says what puts the values of an agent that hangs back.
const killHint = "if it hangs for good, end it with `kill -9` and call this again"

// jsonFlag adds --json to a command.
func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "write JSON (docs/REFERENCE.md documents it)")
}

// bars is where progress is drawn: standard error, where that is a terminal.
func bars(cmd *cobra.Command) io.Writer {
	if w := cmd.ErrOrStderr(); terminal(w) {
		return w
	}
	return nil
}

// toStdout is the name of a file that stands for standard output.
const toStdout = "-"

// noTerminal refuses to write a file to a terminal.
func noTerminal(stdout io.Writer) error {
	if !terminal(stdout) {
		return nil
	}
	return withHint(misusef("standard output is a terminal, and no place for a file"), "add > FILE")
}

// texter can be written for people.
type texter interface{ Text(w io.Writer) error }

func show(w io.Writer, v texter, asJSON bool) error {
	if asJSON {
		return report.WriteJSON(w, v)
	}
	return v.Text(w)
}

// named is how a unit is called when it is spoken of, and where it is.
func named(t web.Target) string {
	return fmt.Sprintf("%s (%s)", report.Printable(t.Name), report.Printable(t.Cgroup))
}

// container is the argument as the agent takes it: where it is a path copied from the file system, the path below
// the cpu hierarchy.
func (g *globals) container(arg string) string {
	tree, err := cgroup.Detect(cgroup.NewDir(g.CgroupRoot))
	if err != nil {
		return arg // the agent knows whether it is a name
	}
	return index.Below(path.Join(g.CgroupRoot, tree.Dir("/")), arg)
}

// elsewhere replaces the error that no agent is running, where an agent has the lock of the control groups all the
// same: it listens in another state directory, or does not listen yet. Any other error stays as it is.
func (g *globals) elsewhere(err error) error {
	if !errors.Is(err, web.ErrNoAgent) {
		return err
	}
	locked := g.Holder()
	if locked == nil || locked.Stranger {
		return err
	}
	who := fmt.Sprintf("process %d", locked.PID)
	if locked.PID == 0 {
		who = "a process that cannot be seen from here"
	}
	return withHint(fmt.Errorf("%w in %s: %s is the agent of %s", web.ErrNoAnswer, g.StateDir, who, locked.Root),
		g.StateDirHint(locked))
}
