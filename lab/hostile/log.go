package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/experiment"
)

// blockedLog is a standard error that nobody reads any more: a pipe, which is full.
type blockedLog struct {
	burst
	reader, writer *os.File
	read           chan struct{} // closed when the reader has stopped
}

func (l *blockedLog) prepare(_ context.Context, _ *bench, s *experiment.Setup) (err error) {
	if l.reader, l.writer, err = os.Pipe(); err != nil {
		return err
	}
	s.Stderr, s.Flags = l.writer, []string{"-v"}
	l.drain()
	return nil
}

// drain reads until it is stopped, or the agent has ended.
func (l *blockedLog) drain() {
	l.read = make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		_, _ = io.Copy(io.Discard, l.reader)
	}(l.read)
}

func (l *blockedLog) begin(_ context.Context, b *bench, a *experiment.Agent) error {
	if err := l.reader.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return fmt.Errorf("stop reading the log: %w", err)
	}
	<-l.read
	if _, err := unix.FcntlInt(l.writer.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
		return fmt.Errorf("make the pipe small: %w", err)
	}
	return a.Configure(l.configure(b, true))
}

// end reads on: the agent may have to say something before it can end.
func (l *blockedLog) end() error {
	if l.writer == nil {
		return nil
	}
	err := errors.Join(l.writer.Close(), l.reader.SetReadDeadline(time.Time{}))
	l.writer = nil
	l.drain()
	return err
}
