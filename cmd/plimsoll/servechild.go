package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/web"
)

// The agent itself listens on no network (docs/SECURITY.md, Two processes). On a plain host it starts `plimsoll
// serve` as a process without privileges, which ends with it, however it ends:
// its standard input is a pipe from the agent.

// unprivileged is the user and the group of that process: no account has the number, so that no other process runs as
// it (Docker's and Kubernetes' images use 65532 for the same purpose,
// and have a namespace of their own or run nothing beside).
const unprivileged = 65532

const (
	serveStart    = 10 * time.Second // until it has said where it listens
	serveAgain    = time.Second      // between its end and another start, doubled each time up to
	serveAgainMax = time.Minute
	serveLasts    = time.Minute // after so long its end is not counted as one of a series
)

// child is the process that serves the network for an agent.
type child struct {
	listen string
	detail string // of metrics
	socket string
	group  int
	log    *slog.Logger

	cmd   *exec.Cmd
	stdin io.Closer
	said  *tail // what it wrote to standard error
	ended chan error
}

// start starts it, and returns the address on which it listens.
func (c *child) start() (address string, err error) {
	// The child gets the socket itself, and no path: the directories above it may be closed to its user.
	socket, err := unix.Open(c.socket, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("open the socket for readers: %w", err)
	}
	inherited := os.NewFile(uintptr(socket), c.socket)
	defer inherited.Close()
	c.said, c.ended = &tail{}, make(chan error, 1)
	c.cmd = exec.Command("/proc/self/exe", "serve", "--child", "--listen", c.listen, "--metrics", c.detail,
		"--agent-socket", "/proc/self/fd/3")
	c.cmd.ExtraFiles = []*os.File{inherited}
	c.cmd.Args[0] = "plimsoll"
	c.cmd.Env, c.cmd.Dir = []string{}, "/"
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, // a Ctrl-C is for the agent, which ends it
		Credential: &syscall.Credential{Uid: unprivileged, Gid: uint32(c.group), Groups: []uint32{}}}
	c.cmd.Stderr = c.said
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return "", err
	}
	if err := c.cmd.Start(); err != nil {
		return "", withHint(fmt.Errorf("start plimsoll serve as user %d: %w", unprivileged, err),
			`--listen "" does without; run "plimsoll serve" as a user of the group that --read-group names`)
	}
	told := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		told <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, out)
		c.ended <- c.cmd.Wait()
	}()
	late := time.NewTimer(serveStart)
	defer late.Stop()
	select {
	case address = <-told:
	case <-late.C:
		_ = c.cmd.Process.Kill()
	}
	if address != "" {
		return address, nil
	}
	err = <-c.ended
	return "", explainChild(c.said.String(), err)
}

// ordinary gives up the real-time priority that all threads of the agent may have had when it started this process
// (internal/probe, lend.go).
func ordinary() error {
	for again := true; again; { // a thread that is made meanwhile has it too
		again = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, thread := range threads {
			id, _ := strconv.Atoi(thread.Name())
			has, err := unix.SchedGetAttr(id, 0)
			if err != nil || has.Policy != unix.SCHED_FIFO {
				continue // it has ended, or is ordinary
			}
			nice, _ := unix.Getpriority(unix.PRIO_PROCESS, id)
			attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: int32(20 - nice)}
			if err := unix.SchedSetAttr(id, &attr, 0); err != nil && err != unix.ESRCH {
				return fmt.Errorf("give up real-time priority: %w", err)
			}
			again = true
		}
	}
	return nil
}

// explainChild makes an error of what the process wrote before it ended.
func explainChild(said string, err error) error {
	var what, hint string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "plimsoll: error: "); ok {
			what = text
		} else if text, ok := strings.CutPrefix(line, "plimsoll: hint: "); ok {
			hint = text
		}
	}
	if what == "" {
		return fmt.Errorf("plimsoll serve ended: %w", cmpErr(err, errors.New("it did not say where it listens")))
	}
	return withHint(errors.New(what), hint)
}

// run keeps it running until the context ends.
func (c *child) run(ctx context.Context) error {
	if c == nil {
		return nil
	}
	defer func() { c.end() }()
	wait, begun := serveAgain, time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-c.ended:
			if time.Since(begun) > serveLasts {
				wait = serveAgain
			}
			c.log.Warn("the process that serves the network has ended; it is started again", "after", wait, "error",
				err, "said", strings.TrimSpace(c.said.String()))
		}
		for again := true; again; {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(wait):
			}
			wait, begun = min(2*wait, serveAgainMax), time.Now()
			if _, err := c.start(); err != nil {
				c.log.Warn("the process that serves the network cannot be started", "again", wait, "error", err)
			} else {
				again = false
			}
		}
	}
}

// end ends it, and waits for that.
func (c *child) end() {
	if c.cmd == nil || c.cmd.Process == nil || c.cmd.ProcessState != nil {
		return
	}
	c.stdin.Close()
	select {
	case <-c.ended:
	case <-time.After(serveStart):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// tail keeps the last of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// maxTail is how much a tail keeps.
const maxTail = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = append([]byte(nil), t.text[max(0, len(t.text)-maxTail):]...)
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// startChild starts the process that serves the network on an address; "" for none.
func startChild(listen, detail string, at web.ReadAccess, log *slog.Logger) (c *child, address string, err error) {
	if listen == "" {
		return nil, "", nil
	}
	c = &child{listen: listen, detail: detail, socket: at.Socket, group: at.Group, log: log}
	address, err = c.start()
	return c, address, err
}

// resolveRead completes the flags of the socket for readers.
func (f *runFlags) resolveRead(g *globals) error {
	if f.read.Socket == "" {
		f.read.Socket = filepath.Join(g.StateDir, web.ReadSocket)
	}
	switch f.read.Group = unprivileged; {
	case f.readGroup == "" && f.listen == "":
		f.read.Group = web.Nobody
	case f.readGroup != "":
		var known bool
		if f.read.Group, known = groupNumber(f.readGroup); known {
			return nil
		}
		found, err := user.LookupGroup(f.readGroup)
		if err != nil {
			return withHint(misusef("--read-group: %v", err),
				"`getent group` lists the groups; a number need not be listed")
		}
		// It is the group that plimsoll serve runs in.
		if f.read.Group, known = groupNumber(found.Gid); !known {
			return withHint(misusef("--read-group: %s is root's group, or none", f.readGroup),
				"name a group of its own, whose members may read")
		}
	}
	return nil
}

// groupNumber reads the number of a group other than root's. The kernel has 32 bits for it, and takes the greatest one
// for none.
func groupNumber(text string) (id int, ok bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return int(n), err == nil && n != 0 && n != math.MaxUint32
}
