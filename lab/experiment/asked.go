package experiment

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// UntilAsked is a context that ends with a signal to end the process, so that the process can remove what it has made.
// The end of its output's reader does not end it before.
func UntilAsked() (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE)
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}
