package experiment

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const plenty = 30 * time.Second // nothing waits so long unless it hangs

func shell(script string) *exec.Cmd { return exec.Command("/bin/sh", "-c", script) }

// TestLaunchEntersFirst: the child reports whether its group was ready when it was started.
func TestLaunchEntersFirst(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "entered")
	cmd := shell(fmt.Sprintf("read -r go; cat %s >&2; exit 3", mark))
	pid := 0
	c, err := Launch(cmd, func(p int) error {
		pid = p
		return os.WriteFile(mark, []byte("in the group"), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	<-c.done
	if pid != cmd.Process.Pid {
		t.Errorf("entered process %d, started %d", pid, cmd.Process.Pid)
	}
	if err := c.Ended(); err == nil || !strings.Contains(err.Error(), "in the group") ||
		!strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("Ended = %v", err)
	}
	if err := c.Stop(plenty); err != nil {
		t.Errorf("Stop of an ended process: %v", err)
	}
}

// TestChildOutlivesThread: a child lives on where the goroutine that launched it ends its thread.
func TestChildOutlivesThread(t *testing.T) {
	var c *Child
	launched := make(chan error)
	thread := 0
	var launch func()
	launch = func() {
		runtime.LockOSThread()
		if thread = unix.Gettid(); thread == os.Getpid() { // the first thread stays: take another
			go launch()
			return
		}
		var err error
		c, err = Launch(shell("read -r go; exec sleep 1000"), func(int) error { return nil })
		launched <- err
	}
	go launch()
	if err := <-launched; err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(plenty); unix.Tgkill(os.Getpid(), thread, 0) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the thread does not end")
		}
	}
	select {
	case <-c.done: // the signal is sent before the thread is gone
	case <-time.After(100 * time.Millisecond):
	}
	if err := c.Ended(); err != nil {
		t.Errorf("the child ended with the thread: %v", err)
	}
	if err := c.Stop(plenty); err != nil {
		t.Error(err)
	}
}

func TestLaunchFails(t *testing.T) {
	refused := errors.New("refused")
	cmd := shell("read -r go && exec sleep 1000")
	if _, err := Launch(cmd, func(int) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	if cmd.ProcessState == nil {
		t.Error("the child is left")
	}
	if _, err := Launch(exec.Command("/no/such/program"), func(int) error { return nil }); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestStop(t *testing.T) {
	enter := func(int) error { return nil }
	willing, err := Launch(shell("read -r go; exec sleep 1000"), enter)
	if err != nil {
		t.Fatal(err)
	}
	if err := willing.Ended(); err != nil {
		t.Errorf("Ended while it runs: %v", err)
	}
	if err := willing.Stop(plenty); err != nil {
		t.Errorf("Stop: %v", err)
	}
	stubborn, err := Launch(shell("trap '' TERM; read -r go; sleep 1000 & echo $! >&2; wait"), enter)
	if err != nil {
		t.Fatal(err)
	}
	for stubborn.said.String() == "" {
		time.Sleep(time.Millisecond)
	}
	if err := stubborn.Stop(50 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("Stop of one that does not want to: %v", err)
	}
	awaitEnd(t, stubborn.said.String())
}

// awaitEnd waits until a process that is not our child is gone, or is a zombie of whoever adopted it.
func awaitEnd(t *testing.T, pid string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("grandchild %s is left", pid)
	exec.Command("kill", "-9", pid).Run()
}

func TestUsed(t *testing.T) {
	c, err := Launch(shell("read -r go; while :; do :; done"), func(int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	const some = 50 * time.Millisecond
	for deadline := time.Now().Add(plenty); ; time.Sleep(10 * time.Millisecond) {
		used, err := c.Used()
		if err != nil {
			t.Fatal(err)
		}
		if used >= some {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("used %v, spinning for %v", used, plenty)
		}
	}
	if err := c.Stop(0); err != nil {
		t.Error(err)
	}
	if used, err := c.Used(); err == nil {
		t.Errorf("after its end: %v", used)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var said tail
	for i := range 2000 {
		fmt.Fprintf(&said, "line %d\n", i)
	}
	if s := said.String(); len(s) > tailSize || !strings.HasSuffix(s, "line 1999") {
		t.Errorf("%d bytes, ends with %q", len(s), s[max(0, len(s)-20):])
	}
}
