package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

// baselineVar names the program that a process of this binary becomes once its view of the machine's use is constant.
const baselineVar = "PLIMSOLL_TEST_CALM"

// baseline makes a command read a constant use of the machine. So the guard refuses nothing because of other load at
// the time, and an agent's decisions depend on the test's own groups alone.
func baseline(cmd *exec.Cmd) error {
	self, err := os.Executable()
	cmd.Env = append(cmd.Environ(), baselineVar+"="+cmd.Path)
	cmd.Path = self
	cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNS
	return err
}

// becomeBaseline covers the counters of the machine's use, in a mount namespace of this process's own, with their
// present values.
func becomeBaseline(program string) error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	counters, err := filepath.Glob(filepath.Join(cgrouptest.Root(), "*/cpuacct.usage")) // v1
	if err != nil {
		return err
	}
	for _, counter := range append(counters, filepath.Join(cgrouptest.Root(), "cpu.stat"), "/proc/stat") {
		if err := freeze(counter); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Unsetenv(baselineVar); err != nil { // the program may be this one, which then confines itself
		return err
	}
	return fmt.Errorf("exec %s: %w", program, syscall.Exec(program, os.Args, os.Environ()))
}

func freeze(counter string) error {
	held, err := os.ReadFile(counter)
	if err != nil {
		return err
	}
	cover, err := os.CreateTemp("", "baseline")
	if err != nil {
		return err
	}
	_, err = cover.Write(held)
	if err = errors.Join(err, cover.Close()); err == nil {
		if err = unix.Mount(cover.Name(), counter, "", unix.MS_BIND, ""); err != nil {
			err = fmt.Errorf("cover %s: %w", counter, err)
		}
	}
	return errors.Join(err, os.Remove(cover.Name()))
}
