package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Child is a process that lives no longer than the experiment.
type Child struct {
	cmd  *exec.Cmd
	gate io.WriteCloser
	said *tail
	done chan struct{}
	err  error // how it ended; valid once done is closed
}

// Launch starts a process that waits for a line on its standard input before it does anything, gives its pid to
// enter, and then sends the line. Standard input stays open as long as the parent lives.
func Launch(cmd *exec.Cmd, enter func(pid int) error) (*Child, error) {
	c := &Child{cmd: cmd, said: &tail{}, done: make(chan struct{})}
	cmd.Stderr = c.said
	cmd.WaitDelay = time.Second // grandchildren may hold on to stderr
	// A group of its own: Ctrl-C reaches the experiment alone, which then ends its children in the right order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	var err error
	if c.gate, err = cmd.StdinPipe(); err != nil {
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
		_, err = io.WriteString(c.gate, "\n")
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop(0))
	}
	return c, nil
}

// PID is the number of the process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Stop ends the process: it asks, and after patience it insists, and that is an error.
func (c *Child) Stop(patience time.Duration) error {
	c.gate.Close()
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

// Ended is an error with the process's last words once it has ended by itself, and nil while it runs.
func (c *Child) Ended() error {
	select {
	case <-c.done:
		return fmt.Errorf("%s ended: %v\n%s", strings.Join(c.cmd.Args, " "), c.err, c.said)
	default:
		return nil
	}
}

// Await tries until it works. Where the process ends instead, or does not come so far in time, that is the error.
func (c *Child) Await(patience time.Duration, try func() error) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := try()
		if err == nil {
			return nil
		}
		if ended := c.Ended(); ended != nil || time.Now().After(deadline) {
			return errors.Join(err, ended)
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

// Used is the CPU time that the threads it has now have used (fs/proc/base.c, proc_pid_schedstat).
func (c *Child) Used() (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", c.PID()))
	if err != nil || len(threads) == 0 {
		return 0, fmt.Errorf("CPU time of %s (pid %d): no threads in /proc", c.cmd.Path, c.PID())
	}
	var sum time.Duration
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended since
		}
		var ran int64
		if _, err := fmt.Sscan(string(text), &ran); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		sum += time.Duration(ran)
	}
	return sum, nil
}
