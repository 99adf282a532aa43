package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"plimsoll/internal/load"
	"plimsoll/lab/experiment"
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

// runJob runs the job to its end, and says how long it took. It is let in once it is ready: what comes before is not
// the group's.
func runJob(ctx context.Context, passes int, enter func(pid int) error) (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, "-work", strconv.Itoa(passes))
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
	if err := child.Wait(ctx); err != nil {
		return 0, errors.Join(err, child.Stop(0))
	}
	return time.Since(start), nil
}
