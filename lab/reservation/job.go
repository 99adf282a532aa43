package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
)

const (
	textSize = 256 << 10 // of which a pass of the batch job compresses: a few milliseconds
	textSeed = 1
)

// work is the batch job, in a process of its own: one thread that compresses a text over and over.
func work(in io.Reader, out io.Writer, passes int) error {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	text := load.Text(textSeed, textSize)
	zip := gzip.NewWriter(io.Discard)
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return fmt.Errorf("wait to be let in: %w", err)
	}
	for range passes {
		zip.Reset(io.Discard)
		if _, err := zip.Write(text); err != nil {
			return err
		}
	}
	return zip.Close()
}

// startJob starts the job, and says when it was let in. It is once it is ready: what comes before is not the group's.
func startJob(passes int, enter func(pid int) error) (child *experiment.Child, start time.Time, err error) {
	cmd := experiment.Again("-work", strconv.Itoa(passes))
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return nil, start, err
	}
	child, err = experiment.Launch(cmd, func(pid int) error {
		if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
			return fmt.Errorf("start the batch job: %w", err)
		}
		start = time.Now()
		return enter(pid)
	})
	return child, start, err
}

// runJob runs the job to its end, and says how long it took.
func runJob(ctx context.Context, passes int, enter func(pid int) error) (time.Duration, error) {
	child, start, err := startJob(passes, enter)
	if err != nil {
		return 0, err
	}
	if err := child.Wait(ctx); err != nil {
		return 0, errors.Join(err, child.Stop(0))
	}
	return time.Since(start), nil
}

// endless is more passes than any measurement has time for.
const endless = 1 << 30

// runJobFor runs the job for a while, and says for how long.
func runJobFor(ctx context.Context, length time.Duration, enter func(pid int) error) (time.Duration, error) {
	child, start, err := startJob(endless, enter)
	if err != nil {
		return 0, err
	}
	err = errors.Join(experiment.Pause(ctx, length), child.Stop(0))
	return time.Since(start), err
}
