package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"plimsoll/internal/cgroup"
)

// thisHost is the machine that we run on. Where it has no shell, as in the image, the probe of a refill burns CPU by
// this program.
func thisHost() cgroup.Host {
	host := cgroup.ThisHost()
	if _, err := os.Stat("/bin/sh"); err != nil {
		host.Spin = spinSelf
	}
	return host
}

func spinSelf() (cgroup.Spinner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return cgroup.Spin(self, "spin")
}

// spinCommand is what spinSelf runs.
func spinCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "spin",
		Short:  "Use a second of CPU on request, for the probe of a refill",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
				return fmt.Errorf("limit the CPU time: %w", err)
			}
			runtime.LockOSThread()
			fmt.Fprintln(cmd.OutOrStdout(), unix.Gettid())
			if _, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n'); err != nil {
				return fmt.Errorf("wait for the request: %w", err)
			}
			for n := 0; ; n++ {
			}
		},
	}
}
