package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cpu"
)

// Host is what Probe reads beside the control groups. In the zero value everything is unknown.
type Host struct {
	Files     fs.FS                   // the root directory
	PID       int                     // names the scratch group
	Writable  func(name string) error // whether this process may write a file below the root directory
	CoreSched func() error            // reads the core scheduling cookie of this process
	Spin      func() (Spinner, error) // starts a process that burns CPU
	Quick     bool                    // skips the probe that takes long on every kernel: FeatureRefill
}

// Spinner is a process that burns CPU from Go to Stop.
type Spinner interface {
	PID() int
	Go()
	Runtime() (time.Duration, error)
	Stop()
}

// ThisHost is the machine that we run on.
func ThisHost() Host {
	return Host{Files: os.DirFS("/"), PID: os.Getpid(), Writable: writable, CoreSched: coreSched, Spin: spinShell}
}

func writable(name string) error { return unix.Access("/"+name, unix.W_OK) }

// coreSched reads the cookie of this process (kernel/sched/core_sched.c, sched_core_share_pid): EINVAL where core
// scheduling is not built in, ENODEV where the machine has no SMT.
func coreSched() error {
	var cookie uint64
	_, _, errno := unix.Syscall6(unix.SYS_PRCTL, unix.PR_SCHED_CORE, unix.PR_SCHED_CORE_GET, 0, 0,
		uintptr(unsafe.Pointer(&cookie)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// hostFeatures are those that have nothing to do with the mount.
func hostFeatures(host Host) Features {
	var found Features
	for _, q := range []struct {
		name string
		ask  func(Host) (State, string)
	}{
		{FeatureSchedExt, schedExt},
		{FeatureEnforced, enforced},
		{FeaturePSI, psi},
		{FeatureCoreSched, coreScheduling},
	} {
		state, detail := q.ask(host)
		found = append(found, feature(q.name, state, detail))
	}
	return found
}

func schedExt(host Host) (State, string) {
	state, err := readHost(host, "sys/kernel/sched_ext/state")
	if errors.Is(err, fs.ErrNotExist) {
		return No, "not built into this kernel"
	}
	if err != nil {
		return Unknown, err.Error()
	}
	state = strings.TrimSpace(state)
	if ops, err := readHost(host, "sys/kernel/sched_ext/root/ops"); err == nil {
		state += ": " + strings.TrimSpace(ops)
	}
	return Yes, state
}

// enforced says whether tasks are in the fair class, the only one that enforces bandwidth limits. A sched_ext scheduler
// takes over all of them, or, when switch_all is 0, those of policy SCHED_EXT.
func enforced(host Host) (State, string) {
	state, err := readHost(host, "sys/kernel/sched_ext/state")
	if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(state) == "disabled" {
		return Yes, "no sched_ext scheduler is loaded"
	}
	if err != nil {
		return Unknown, err.Error()
	}
	all, err := readHost(host, "sys/kernel/sched_ext/switch_all")
	if err != nil {
		return Unknown, err.Error()
	}
	if strings.TrimSpace(all) == "0" {
		return Yes, "but not for the tasks that a sched_ext scheduler has taken over"
	}
	return No, "a sched_ext scheduler runs all tasks: the kernel enforces neither limit nor burst"
}

func psi(host Host) (State, string) {
	_, err := readHost(host, "proc/pressure/cpu")
	switch {
	case err == nil:
		return Yes, "/proc/pressure/cpu"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EOPNOTSUPP):
		return No, "not built in, or off (boot with psi=1)"
	}
	return Unknown, err.Error()
}

func coreScheduling(host Host) (State, string) {
	if host.CoreSched == nil {
		return Unknown, "not probed"
	}
	err := host.CoreSched()
	switch {
	case err == nil:
		return Yes, "prctl(PR_SCHED_CORE)"
	case errors.Is(err, syscall.EINVAL):
		return No, "this kernel does not know prctl(PR_SCHED_CORE)"
	case errors.Is(err, syscall.ENODEV):
		return No, "this machine has no SMT"
	}
	return Unknown, err.Error()
}

func readHost(host Host, name string) (string, error) {
	if host.Files == nil {
		return "", fmt.Errorf("%s: not probed", name)
	}
	data, err := fs.ReadFile(host.Files, name)
	return string(data), err
}

func hostNumber(host Host, name string) (int64, error) {
	text, err := readHost(host, name)
	if err != nil {
		return 0, err
	}
	n, err := decimal(strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

func onlineCPUs(host Host) (int, error) {
	text, err := readHost(host, "sys/devices/system/cpu/online")
	if err != nil {
		return 0, err
	}
	set, err := cpu.ParseSet(text)
	return len(set), err
}

// process is a Spinner: a program that writes the ID of the thread that will spin, waits for a line, and then loops
// until it has used a second of CPU. It ends with the thread that made it.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	thread int
}

func spinShell() (Spinner, error) {
	return Spin("/bin/sh", "-c", "ulimit -t 1; echo $$; read go && while :; do :; done")
}

// Spin starts a program that can be a Spinner.
func Spin(program string, args ...string) (Spinner, error) {
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		p.thread, err = strconv.Atoi(strings.TrimSpace(line))
	}
	if err != nil {
		p.Stop()
		return nil, fmt.Errorf("%s does not say which thread spins: %w", program, err)
	}
	return p, nil
}

func (p *process) PID() int { return p.cmd.Process.Pid }

func (p *process) Go() { _, _ = io.WriteString(p.stdin, "go\n") }

// Runtime reads the time on CPU of the thread that spins (fs/proc/base.c, proc_pid_schedstat). Others do not count: the
// monitor of Go's runtime wakes every 10 ms, and runs on another CPU as long as that has runtime left.
func (p *process) Runtime() (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", p.PID(), p.thread))
	if err != nil {
		return 0, err
	}
	ran, _, _ := strings.Cut(string(data), " ")
	return parseNanos(ran)
}

func (p *process) Stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // killed: its error says so
}
