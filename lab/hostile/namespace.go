package main

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// isolated is in the environment of a process whose mounts are its own.
const isolated = "PLIMSOLL_LAB_MOUNTS"

// isolate starts this program again in a mount namespace of its own, where it is in none yet. What it mounts ends with
// it, however it ends, and nobody else sees it.
func isolate() error {
	if os.Getenv(isolated) != "" {
		return nil
	}
	runtime.LockOSThread() // the namespace is the thread's, and of the program that it becomes
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts from others: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	err = unix.Exec(self, os.Args, append(os.Environ(), isolated+"=1"))
	return fmt.Errorf("start again in a mount namespace: %w", err)
}

// mountMemory mounts a file system in memory; size is its bytes.
func mountMemory(dir string, size int) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV,
		fmt.Sprintf("size=%d,mode=755", size)); err != nil {
		return fmt.Errorf("mount a tmpfs on %s: %w", dir, err)
	}
	return nil
}

// unmount ends a mount, also while files of it are open.
func unmount(dir string) error {
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}
