package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
	"plimsoll/lab/frame"
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

// runJob runs the job in the target's group, to its end or for a while where it has no passes, and says how long it
// took. It is let in once it is ready: what comes before is not the group's.
func (b *bench) runJob(ctx context.Context, passes int) time.Duration {
	cmd := experiment.Again("-work", strconv.Itoa(cmp.Or(passes, endless)))
	ready := frame.Must(cmd.StdoutPipe())
	var start time.Time
	child := frame.Must(experiment.Launch(cmd, func(pid int) error {
		if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
			return fmt.Errorf("start the batch job: %w", err)
		}
		start = time.Now()
		return b.enter(b.target)(pid)
	}))
	var err error
	if passes > 0 {
		err = child.Wait(ctx)
	} else {
		err = experiment.Pause(ctx, b.slot)
	}
	frame.Check(errors.Join(err, child.Kill()))
	return time.Since(start)
}

// kind is what a neighbour does.
type kind string

const (
	nobody   kind = "alone"
	onCPU    kind = "cpu"    // stress-ng: arithmetic
	onMemory kind = "memory" // stress-ng: streams through memory, so the hardware is contended for too
	// stress-ng: many that each run for 2 ms and sleep for ten times as long. The balancer cannot place them: no CPU
	// has the same ones for long
	sleepers kind = "sleepers"
)

// neighbour is who is beside the target.
type neighbour struct {
	Kind    kind `json:"kind"`
	Threads int  `json:"threads"`
	Capped  bool `json:"capped"` // its limit is what it has reserved; else it has none (burstable)
}

func (n neighbour) name() string {
	if n.Kind == nobody {
		return string(nobody)
	}
	how := "burstable"
	if n.Capped {
		how = "capped"
	}
	return fmt.Sprintf("%s %s x%d", how, n.Kind, n.Threads)
}

// command is the program.
func (n neighbour) command(stress string) (*exec.Cmd, error) {
	threads := strconv.Itoa(n.Threads)
	switch n.Kind {
	case onCPU:
		return experiment.Gated(stress, "--quiet", "--cpu", threads, "--cpu-method", "int64"), nil
	case onMemory:
		return experiment.Gated(stress, "--quiet", "--stream", threads), nil
	case sleepers:
		return experiment.Gated(stress, "--quiet", "--cpu", threads, "--cpu-method", "int64", "--cpu-load", "9",
			"--cpu-load-slice", "2"), nil
	}
	return nil, fmt.Errorf("no such neighbour: %s", n.Kind)
}
