package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/scx"
)

// schedSocket is where the process that loaded a scheduler answers, in the state directory.
const schedSocket = "sched.sock"

// schedSchema names the format of `plimsoll sched status --json` and of `plimsoll sched check --json`.
const schedSchema = "plimsoll.sched/v1"

func schedCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sched",
		Short: "Load a sched_ext scheduler into the kernel while it runs, replace it, and take it out again",
		Long: `Load a sched_ext scheduler into the kernel while it runs, replace it, and take it out again.
Before anything changes, the machine is checked for obstacles, and the kernel verifies the programs. The scheduler is in
force for all tasks or for none. It ends with the process that loaded it, whatever ends that: tasks are then run by the
kernel's own scheduler, and nothing stays behind.`,
		Example: "  plimsoll sched check my.bpf.o && plimsoll sched load my.bpf.o",
		Args:    cobra.NoArgs, // without RunE cobra answers to a mistyped command with the help, and without an error
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(schedLoad(g), schedSwap(g), schedUnload(g), schedStatus(g), schedCheck())
	return cmd
}

// mostFlag adds --most-pause to a command.
func mostFlag(cmd *cobra.Command, most *time.Duration) {
	cmd.Flags().DurationVar(most, "most-pause", 2*time.Second,
		"take the scheduler out when a CPU runs no ordinary task for so long in its first 10 s; 0: leave that to the kernel's watchdog")
}

func schedLoad(g *globals) *cobra.Command {
	var most time.Duration
	cmd := &cobra.Command{
		Use:     "load FILE.bpf.o",
		Short:   "Put a scheduler in force, and keep it until this command is ended",
		Example: "  plimsoll sched load my.bpf.o",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, _, err := readObject(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "plimsoll: warning: "+o.Name+" takes over what the kernel's own scheduler does: "+
				"while it is in force, the kernel enforces neither quota nor burst of the tasks that it runs")
			return keepLoaded(cmd, g, o, most)
		},
	}
	mostFlag(cmd, &most)
	return cmd
}

// readObject reads a scheduler, and gives its bytes too.
func readObject(file string) (*scx.Object, []byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read the scheduler: %w", err)
	}
	o, err := scx.Read(bytes.NewReader(data))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return o, data, nil
}

// keepLoaded keeps a scheduler in force until a signal, an `unload`, or the kernel ends it.
func keepLoaded(cmd *cobra.Command, g *globals, o *scx.Object, most time.Duration) error {
	unmake, err := makeStateDir(g.stateDir)
	if err != nil {
		return err
	}
	defer unmake()
	s, err := listenSched(filepath.Join(g.stateDir, schedSocket))
	if err != nil {
		return err
	}
	defer s.close()
	signals := make(chan os.Signal, 1) // before the load: a signal in its midst is not lost
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	h, err := scx.Run(o, most)
	if err != nil {
		return explainSched(err)
	}
	go s.serve(h)
	status, err := h.Status()
	if err != nil {
		return errors.Join(err, discard(h))
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s is in force: %s\n", status.Ops, pauseText(status.Pause))
	for tick := time.NewTicker(500 * time.Millisecond); ; {
		select {
		case <-signals:
		case <-s.unload:
		case <-tick.C:
			if why, err := h.Ended(); err != nil || why != "" {
				return errors.Join(fmt.Errorf("the scheduler is not in force any more: %s", why), err, discard(h))
			}
			continue
		}
		p, err := h.Close()
		if err == nil {
			fmt.Fprintf(out, "taken out: %s\n", pauseText(p))
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

// pauseText says how long a change took.
func pauseText(p scx.Pause) string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	return fmt.Sprintf("it took %v, and the longest pause of a task was %v (%v just before)", round(p.Took), round(p.Longest), round(p.Baseline))
}

// explainSched adds what can be done.
func explainSched(err error) error {
	var found scx.Obstacle
	switch {
	case errors.Is(err, os.ErrPermission):
		return withHint(err, "loading a scheduler needs root, or CAP_BPF and CAP_PERFMON")
	case errors.As(err, &found) && strings.Contains(err.Error(), scx.ErrOccupied.Error()):
		return withHint(err, "`plimsoll sched unload` removes a scheduler that `plimsoll sched load` has loaded; only the tool that loaded another one can end it")
	}
	return err
}

func schedSwap(g *globals) *cobra.Command {
	var most time.Duration
	cmd := &cobra.Command{
		Use:     "swap FILE.bpf.o",
		Short:   "Replace the scheduler that `load` has loaded; if that fails, the old one is put back",
		Example: "  plimsoll sched swap better.bpf.o",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, data, err := readObject(args[0])
			if err != nil {
				return err
			}
			s, err := g.askSched(schedRequest{Do: doSwap, Object: data, Most: most})
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is in force: %s\n", s.Ops, pauseText(s.Pause))
			return nil
		},
	}
	mostFlag(cmd, &most)
	return cmd
}

func schedUnload(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "unload",
		Short:   "Remove the scheduler that `load` has loaded",
		Example: "  plimsoll sched unload",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := g.askSched(schedRequest{Do: doUnload})
			if err != nil {
				return err
			}
			for end := time.Now().Add(askTimeout); ; time.Sleep(20 * time.Millisecond) {
				now, err := scx.ReadState()
				if err != nil {
					return err
				}
				if now.Ops != s.Ops || now.Enabled != s.Enabled {
					fmt.Fprintf(cmd.OutOrStdout(), "%s is taken out\n", s.Ops)
					return nil
				}
				if time.Now().After(end) {
					return fmt.Errorf("%s is still %s after %v", s.Ops, now.State, askTimeout)
				}
			}
		},
	}
}

// schedReport is `plimsoll sched status`.
type schedReport struct {
	Schema string `json:"schema"`
	scx.Status
}

// Text writes it for people.
func (r schedReport) Text(w io.Writer) error {
	line := fmt.Sprintf("sched_ext: %s", r.State.State)
	if r.Ops != "" {
		line += ": " + r.Ops
	}
	if r.PID != 0 {
		line += fmt.Sprintf(", loaded by process %d since %s\n%s, at try %d", r.PID, r.Since.Format(time.RFC3339), pauseText(r.Pause), r.Tries)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

func schedStatus(g *globals) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show which scheduler is in force, which process loaded it, and how long its load took",
		Example: "  plimsoll sched status --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := schedReport{Schema: schedSchema}
			var err error
			if r.Status, err = g.askSched(schedRequest{Do: doStatus}); errors.Is(err, errNotLoaded) {
				r.Status.State, err = scx.ReadState()
			}
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), r, asJSON)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func schedCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "check FILE.bpf.o",
		Short:   "Say whether a scheduler can be loaded here, and change nothing",
		Example: "  plimsoll sched check my.bpf.o",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, _, err := readObject(args[0])
			if err != nil {
				return err
			}
			r := schedFindings{Schema: schedSchema, Name: o.Name, Findings: scx.Preflight(o)}
			if err := show(cmd.OutOrStdout(), r, asJSON); err != nil {
				return err
			}
			if o := (scx.Obstacle{Findings: r.Findings}); o.Any() {
				return o
			}
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// schedFindings is `plimsoll sched check`.
type schedFindings struct {
	Schema   string        `json:"schema"`
	Name     string        `json:"name"`
	Findings []scx.Finding `json:"findings"`
}

// Text writes it for people.
func (r schedFindings) Text(w io.Writer) error {
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
