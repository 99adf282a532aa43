package loader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/internal/hint"
	"plimsoll/internal/scx"
)

// Keep keeps a scheduler in force until the context, an Unload, or the kernel ends it. It answers at a socket in the
// state directory meanwhile.
func Keep(ctx context.Context, stateDir string, o *scx.Object, most time.Duration, out io.Writer) error {
	unmake, err := makeStateDir(stateDir)
	if err != nil {
		return err
	}
	defer unmake()
	s, err := listen(filepath.Join(stateDir, socket))
	if err != nil {
		return err
	}
	defer s.close()
	h, err := scx.Run(o, most)
	if err != nil {
		return explain(err)
	}
	go s.serve(h)
	status, err := h.Status()
	if err != nil {
		return errors.Join(err, discard(h))
	}
	fmt.Fprintf(out, "%s is in force: %s\n", status.Ops, Stall(status.Stall))
	for tick := time.NewTicker(500 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
		case <-s.unload:
		case <-tick.C:
			if why, err := h.Ended(); err != nil || why != "" {
				return errors.Join(fmt.Errorf("the scheduler is not in force any more: %s", why), err, discard(h))
			}
			continue
		}
		p, err := h.Close()
		if err == nil {
			fmt.Fprintf(out, "taken out: %s\n", Stall(p))
		}
		return err
	}
}

// makeStateDir makes the state directory, where there is none. unmake removes it again if this made it and no process
// has put anything into it since.
func makeStateDir(dir string) (unmake func(), err error) {
	_, missing := os.Stat(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	if missing == nil {
		return func() {}, nil
	}
	return func() { _ = os.Remove(dir) }, nil // one that is not empty stays
}

// discard closes a scheduler that has ended or has failed.
func discard(h *scx.Running) error {
	_, err := h.Close()
	return err
}

// Stall says how long a change took.
func Stall(p scx.Stall) string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	return fmt.Sprintf("it took %v, and the longest stall of a task was %v (%v just before)", round(p.Took),
		round(p.Longest), round(p.Baseline))
}

// explain adds what can be done.
func explain(err error) error {
	var found scx.Obstacle
	switch {
	case errors.Is(err, os.ErrPermission):
		return hint.With(err, "loading a scheduler needs root, or CAP_BPF and CAP_PERFMON")
	case errors.As(err, &found) && strings.Contains(err.Error(), scx.ErrOccupied.Error()):
		return hint.With(err,
			"`plimsoll sched unload` removes a scheduler that `plimsoll sched load` has loaded; only the tool that "+
				"loaded another one can end it")
	}
	return err
}
