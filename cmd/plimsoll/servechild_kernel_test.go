package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestServeIsOrdinary: the process that serves the network gives up the real-time priority with which it was started.
func TestServeIsOrdinary(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	const policy = unix.SCHED_FIFO
	runtime.LockOSThread() // and ends with its thread
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy, Priority: 1}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		t.Fatal(err)
	}
	serve := exec.Command(binary, "serve", "--child", "--listen", "127.0.0.1:0", "--agent-socket",
		filepath.Join(t.TempDir(), "socket"))
	serve.Stderr = os.Stderr
	serve.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err1 := serve.StdinPipe()
	out, err2 := serve.StdoutPipe()
	if err := errors.Join(err1, err2, serve.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = serve.Wait() }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(serve.Process.Pid), "task"))
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	for _, thread := range threads {
		id, _ := strconv.Atoi(thread.Name())
		if has, err := unix.SchedGetAttr(id, 0); err != nil || has.Policy == policy {
			t.Errorf("thread %d: %+v, %v", id, has, err)
		}
	}
}
