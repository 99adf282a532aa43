package main

import (
	"bufio"
	"cmp"
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

// endless is more passes than any measurement has time for.
const endless = 1 << 30

// runJob runs the job to its end, or for a while where it has no passes, and says how long it took. It is let in once it is
// ready: what comes before is not the group's.
func runJob(ctx context.Context, passes int, length time.Duration, enter func(pid int) error) (time.Duration, error) {
	cmd := experiment.Again("-work", strconv.Itoa(cmp.Or(passes, endless)))
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	var start time.Time
	child, err := experiment.Launch(cmd, func(pid int) error {
		if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
			return fmt.Errorf("start the batch job: %w", err)
		}
		start = time.Now()
		return enter(pid)
	})
	if err != nil {
		return 0, err
	}
	if passes > 0 {
		err = child.Wait(ctx)
	} else {
		err = experiment.Pause(ctx, length)
	}
	err = errors.Join(err, child.Kill())
	return time.Since(start), err
}
