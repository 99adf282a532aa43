package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Child is a process that lives no longer than the experiment.
type Child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  *tail
	done  chan struct{}
	err   error // how the process ended; valid once done is closed
}

// Launch starts a process that waits for a line on its standard input before it does anything, gives its pid to
// enter, and then sends the line. Standard input stays open as long as the parent lives. The end of its standard
// error is kept for errors, unless the command sends that elsewhere.
func Launch(cmd *exec.Cmd, enter func(pid int) error) (*Child, error) {
	c := &Child{cmd: cmd, said: &tail{}, done: make(chan struct{})}
	if cmd.Stderr == nil {
		cmd.Stderr = c.said
	}
	cmd.WaitDelay = time.Second // grandchildren may keep stderr open
	// A group of its own: Ctrl-C reaches the experiment alone, which then ends its children in the right order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	var err error
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	if err = cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	if err = enter(cmd.Process.Pid); err == nil {
		_, err = io.WriteString(c.stdin, "\n")
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop(0))
	}
	return c, nil
}

// PID is the number of the process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Write writes a line to the standard input of the process.
func (c *Child) Write(line string) error {
	if _, err := io.WriteString(c.stdin, line+"\n"); err != nil {
		return errors.Join(err, c.Ended())
	}
	return nil
}

// Stop ends the process, where one was started, by SIGTERM. After patience it sends SIGKILL, and that is an error.
func (c *Child) Stop(patience time.Duration) error {
	if c == nil {
		return nil
	}
	c.stdin.Close()
	if c.Ended() != nil {
		return nil
	}
	if patience > 0 {
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-c.done:
			return nil
		case <-time.After(patience):
		}
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	<-c.done
	if patience == 0 {
		return nil
	}
	return fmt.Errorf("%s (pid %d) did not end within %v and was killed", c.cmd.Path, c.cmd.Process.Pid, patience)
}

// Kill ends the process by SIGKILL.
func (c *Child) Kill() error { return c.Stop(0) }

// Again is this program once more, with other arguments.
func Again(args ...string) *exec.Cmd { return exec.Command("/proc/self/exe", args...) }

// Ended is an error with the process's last words once it has ended by itself, and nil while it runs.
func (c *Child) Ended() error {
	if c == nil {
		return nil
	}
	select {
	case <-c.done:
		return fmt.Errorf("%s ended: %v\n%s", strings.Join(c.cmd.Args, " "), c.err, c.said)
	default:
		return nil
	}
}

// Await tries until it works. Where the process or the context ends instead, or the process does not come so far in time, that
// is the error.
func (c *Child) Await(ctx context.Context, patience time.Duration, try func() error) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left := try()
		switch ended := c.Ended(); {
		case ended != nil:
			return ended
		case left == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(deadline):
			return fmt.Errorf("not within %v: %w\n%s", patience, left, c.said)
		}
	}
}

// tail keeps the end of what a process says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if cut := len(t.text) - tailSize; cut > 0 {
		t.text = bytes.Clone(t.text[cut:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

// Wait waits until the process has ended by itself, with success.
func (c *Child) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.done:
	}
	if c.err != nil {
		return c.Ended()
	}
	return nil
}

// Used is the CPU time that the process has used so far.
func (c *Child) Used() (time.Duration, error) { return CPUTime(c.PID()) }

// CPUTime reads the clock of a process's CPU time, which is exact to the nanosecond (clock_getcpuclockid(3): the number is
// ~pid << 3 | CPUCLOCK_SCHED, include/linux/posix-timers.h).
func CPUTime(pid int) (time.Duration, error) {
	var ts unix.Timespec
	const schedClock = 2
	if err := unix.ClockGettime(int32(^uint32(pid)<<3|schedClock), &ts); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}
