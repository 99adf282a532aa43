package main

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/progress"
	"plimsoll/internal/schedext/loader"
	"plimsoll/internal/scx"
)

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

// mostFlag adds --most-stall to a command.
func mostFlag(cmd *cobra.Command, most *time.Duration) {
	cmd.Flags().DurationVar(most, "most-stall", 2*time.Second, "unload the scheduler if a CPU runs no ordinary task "+
		"for this long in its first 10 s; 0: leave that to the kernel's watchdog")
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
			fmt.Fprintln(cmd.ErrOrStderr(),
				"plimsoll: warning: "+o.Name+" takes over what the kernel's own scheduler does: "+
					"while it is in force, the kernel enforces neither quota nor burst of the tasks that it runs")
			ctx, stop := untilAsked(cmd) // before the load: a signal in its midst is not lost
			defer stop()
			return loader.Keep(ctx, g.StateDir, o, most, cmd.OutOrStdout())
		},
	}
	mostFlag(cmd, &most)
	return cmd
}

// readObject reads a scheduler, and gives its bytes too.
func readObject(file string) (*scx.Object, []byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, withHint(fmt.Errorf("read the scheduler: %w", err),
			"name the compiled object of a sched_ext scheduler, FILE.bpf.o")
	}
	o, err := scx.Read(bytes.NewReader(data))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return o, data, nil
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
			bar := progress.Start(bars(cmd), "replacing", 0)
			s, err := loader.Swap(g.StateDir, data, most)
			bar.Stop()
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is in force: %s\n", s.Ops, loader.Stall(s.Stall))
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
			s, err := loader.Unload(g.StateDir, askTimeout)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is taken out\n", s.Ops)
			return err
		},
	}
}

func schedStatus(g *globals) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show which scheduler is in force, which process loaded it, and how long its load took",
		Example: "  plimsoll sched status --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := loader.InForce(g.StateDir)
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
			r := loader.Check(o)
			if err := show(cmd.OutOrStdout(), r, asJSON); err != nil {
				return err
			}
			return r.Err()
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}
