package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cpu"
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
	if err = c.start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	if err = enter(cmd.Process.Pid); err == nil {
		_, err = io.WriteString(c.stdin, "\n")
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop(0))
	}
	return c, nil
}

// start starts the process on a thread that then waits for its end. With the thread that started it a process gets its
// signal (prctl(2), PR_SET_PDEATHSIG), and a thread ends with a goroutine that is locked to it.
func (c *Child) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.err = c.cmd.Wait()
			close(c.done)
		}
	}()
	return <-started
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

// Await tries until it works. Where the process or the context ends instead, or the process does not come so far in
// time, that is the error.
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

// CPUTime reads the clock of a process's CPU time, which is exact to the nanosecond (clock_getcpuclockid(3): the number
// is ~pid << 3 | CPUCLOCK_SCHED, include/linux/posix-timers.h).
func CPUTime(pid int) (time.Duration, error) {
	var ts unix.Timespec
	const schedClock = 2
	if err := unix.ClockGettime(int32(^uint32(pid)<<3|schedClock), &ts); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// Sleeper starts a process in a group that does nothing: cat sleeps in a read until its standard input ends, which it
// does with this process at the latest.
func (g *Groups) Sleeper(group string) (*Child, error) {
	return Launch(exec.Command("cat"), func(pid int) error { return g.Enter(group, pid) })
}

// Spinner starts a process in a group that wants a whole CPU, for so much CPU time at most. With a file it begins when
// that has come to its end.
func (g *Groups) Spinner(group string, most time.Duration, start *os.File) (*Child, error) {
	wait := ""
	if start != nil {
		wait = "read -r go <&3; "
	}
	spin := fmt.Sprintf("read -r go; %sulimit -t %d; while :; do :; done", wait, int(most.Seconds()))
	cmd := exec.Command("/bin/sh", "-c", spin)
	if start != nil {
		cmd.ExtraFiles = []*os.File{start}
	}
	return Launch(cmd, func(pid int) error { return g.Enter(group, pid) })
}

// Memory reads a line of /proc/PID/status, such as "VmRSS:" or "VmHWM:", in bytes.
func (c *Child) Memory(key string) (int64, error) { return Memory(c.PID(), key) }

// Memory does so of any process.
func Memory(pid int, key string) (int64, error) {
	kib, err := count(pid, "status", key)
	return kib << 10, err
}

// Count reads the number in a line of a file of /proc/PID, such as "syscr:" of io.
func (c *Child) Count(file, key string) (int64, error) { return count(c.PID(), file, key) }

func count(pid int, file, key string) (int64, error) {
	name := fmt.Sprintf("/proc/%d/%s", pid, file)
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(string(data), key)
	words := strings.Fields(after)
	if !found || len(words) == 0 {
		return 0, fmt.Errorf("%s: no %s", name, key)
	}
	return strconv.ParseInt(words[0], 10, 64)
}

// ForgetPeak has the kernel count the peak of the memory anew (proc(5), clear_refs).
func (c *Child) ForgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.PID()), []byte("5"), 0)
}

// Program finds a program that `make setup` installs.
func Program(name string) (string, error) {
	found, err := exec.LookPath(name)
	return found, WithHint(err, "run `make setup`, which installs "+name)
}

// Gated is a program that waits for a line on its standard input before it begins.
func Gated(program string, args ...string) *exec.Cmd {
	return exec.Command("/bin/sh", append([]string{"-c", `read -r go && exec "$@"`, "sh", program}, args...)...)
}

// Bind ties a process to a CPU: left to the balancer, two could be on one CPU while another is idle.
func Bind(pid, id int) error { return BindTo(pid, cpu.Set{id}) }

// BindTo lets a thread, or the first thread of a process, run on these CPUs alone. One that has ended is no error.
func BindTo(pid int, cpus cpu.Set) error {
	var set unix.CPUSet
	for _, id := range cpus {
		set.Set(id)
	}
	if err := unix.SchedSetaffinity(pid, &set); err != nil && err != unix.ESRCH {
		return fmt.Errorf("bind process %d to CPU %s: %w", pid, cpus, err)
	}
	return nil
}

// Allowed are the CPUs that this process may run on.
func Allowed() (set cpu.Set, err error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil, fmt.Errorf("read which CPUs may be used: %w", err)
	}
	for id := range 64 * len(allowed) {
		if allowed.IsSet(id) {
			set = append(set, id)
		}
	}
	return set, nil
}
