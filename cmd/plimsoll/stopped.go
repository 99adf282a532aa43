package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// untilAsked is a command's context, which ends with a signal to end the process: also with the end of its terminal,
// unless it was started to outlive that (nohup).
func untilAsked(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	asks := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) {
		asks = append(asks, syscall.SIGHUP)
	}
	return signal.NotifyContext(cmd.Context(), asks...)
}

// asDaemon is the context of a command that may be a daemon. SIGHUP has two meanings: that the terminal is gone, and,
// where there never was one, that the configuration must be read again (daemon(7), SysV daemons; ExecReload= of
// systemd.service(5)). The channel reports the latter.
func asDaemon(cmd *cobra.Command, stdin *os.File) (ctx context.Context, rereads <-chan os.Signal,
	stop context.CancelFunc) {
	if terminal(stdin) {
		ctx, stop = untilAsked(cmd)
		return ctx, nil, stop
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	return ctx, hangups, func() {
		signal.Stop(hangups)
		cancel()
	}
}

// terminal says whether a file is one.
func terminal(file any) bool {
	f, ok := file.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// outliveReaders keeps the process alive when its output has no reader any more (`plimsoll run 2>&1 | head`),
// because it has something to restore first.
func outliveReaders() { signal.Ignore(syscall.SIGPIPE) }
