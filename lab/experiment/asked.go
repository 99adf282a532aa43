package experiment

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// UntilAsked is a context that ends when somebody asks the process to end, so that it can remove what it has made. That
// nobody reads its output any more does not end it before.
func UntilAsked() (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE)
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}
