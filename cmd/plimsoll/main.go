// Command plimsoll lets containers use the CPU that they saved up or that nobody needs, up to the line where a
// neighbour would be hurt.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

// globals are the flags that every command takes.
type globals struct {
	cgroupRoot string
	stateDir   string
}

// hinted is an error with advice for the person who reads it.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// Hint is advice for the person who reads the error.
func (h hinted) Hint() string { return h.hint }

// withHint attaches advice to an error.
func withHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return hinted{err, hint}
}

func main() {
	root, name := newRoot(), "plimsoll"
	if asPlugin(os.Args[0]) {
		root, name = newPlugin(), "kubectl plimsoll"
	}
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, name+": error:", err)
		var h interface{ Hint() string }
		if errors.As(err, &h) && h.Hint() != "" {
			fmt.Fprintln(os.Stderr, name+": hint:", h.Hint())
		}
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	g := &globals{}
	root := &cobra.Command{
		Use:           "plimsoll",
		Short:         "Let containers use the CPU that they saved up or that nobody needs, up to the line where a neighbour would be hurt",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&g.cgroupRoot, "cgroup-root", "/sys/fs/cgroup", "where the control groups are mounted")
	flags.StringVar(&g.stateDir, "state-dir", "/run/plimsoll", "where the journal and the control socket live")
	root.AddCommand(runCommand(g), planCommand(g), restoreCommand(g), retireCommand(g), doctorCommand(g), statusCommand(g), reportCommand(g), pauseCommand(g), holdCommand(g), resumeCommand(g), releaseCommand(g), recordCommand(g), diagnoseCommand(g), schedCommand(g), simulateCommand(), adviseCommand(g), demoCommand(g), demoServiceCommand(), waitCommand())
	return root
}
