package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// untilAsked is a command's context, which ends when somebody asks the process to end: also by closing its terminal,
// unless it was started to outlive that (nohup).
func untilAsked(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	asks := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) {
		asks = append(asks, syscall.SIGHUP)
	}
	return signal.NotifyContext(cmd.Context(), asks...)
}

// outliveReaders keeps the process from being killed where nobody reads what it says any more (`plimsoll run 2>&1 | head`),
// for it has something to put back first.
func outliveReaders() { signal.Ignore(syscall.SIGPIPE) }
