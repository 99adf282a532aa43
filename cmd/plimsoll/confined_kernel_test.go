package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"plimsoll/internal/capability"
)

// confinedVar has the confinement of a process of this binary that becomes the program once it has given up what the
// confinement says.
const confinedVar = "PLIMSOLL_TEST_CONFINED"

// confinement is what the commands of a test run with, as a service manager or a container runtime sets it up. A
// process of root that executes a program gets the capabilities that its bounding set has left (capabilities(7)).
type confinement struct {
	Program string
	Keep    []capability.Capability // all others are dropped
	Memlock uint64                  // RLIMIT_MEMLOCK
	Group   string                  // directory of the control group that it moves into; "": none
	User    int                     // and its group
	Calls   string                  // seccomp profile; "": none
}

// apply makes a command run confined.
func (c confinement) apply(cmd *exec.Cmd) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c.Program, cmd.Path = cmd.Path, self
	text, err := json.Marshal(c)
	cmd.Env = append(os.Environ(), confinedVar+"="+string(text))
	return err
}

// becomeConfined gives up what the text says, and executes the program.
func becomeConfined(text string) error {
	runtime.LockOSThread() // capabilities and filters are a thread's, and the one that executes is what remains
	var c confinement
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	if c.Group != "" {
		if err := os.WriteFile(c.Group+"/cgroup.procs", []byte("0"), 0o600); err != nil {
			return err
		}
	}
	if c.Memlock > 0 {
		limit := unix.Rlimit{Cur: c.Memlock, Max: c.Memlock}
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
			return fmt.Errorf("limit locked memory: %w", err)
		}
	}
	if err := c.dropCapabilities(); err != nil {
		return err
	}
	if c.User != 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(c.User), syscall.Setuid(c.User)); err != nil {
			return err
		}
	}
	if err := os.Unsetenv(confinedVar); err != nil {
		return err
	}
	if c.Calls != "" {
		if err := confineCalls(c.Calls); err != nil {
			return err
		}
	}
	return fmt.Errorf("exec %s: %w", c.Program, syscall.Exec(c.Program, os.Args, os.Environ()))
}

// dropCapabilities leaves those that are kept in the bounding set.
func (c confinement) dropCapabilities() error {
	for i := range capability.Capability(64) {
		if slices.Contains(c.Keep, i) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(i), 0, 0, 0); err == unix.EINVAL {
			break // the kernel has no more
		} else if err != nil {
			return fmt.Errorf("drop %s: %w", i, err)
		}
	}
	return nil
}
