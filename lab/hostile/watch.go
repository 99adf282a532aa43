package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/probe"
	"plimsoll/lab/frame"
)

// watch notes when limit files of groups are written, by any process.
type watch struct {
	fd, stop int // inotify, and what ends the thread
	groups   map[int32]uint64
	done     chan struct{}
	mu       sync.Mutex
	list     []write
	err      error
}

// watchWrites begins to watch the groups of the victims. root is where the control groups are mounted.
func watchWrites(root string, jobs *frame.Jobs) (*watch, error) {
	w := &watch{groups: map[int32]uint64{}, done: make(chan struct{})}
	var err error
	if w.fd, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	if w.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return nil, errors.Join(err, unix.Close(w.fd))
	}
	for i, group := range jobs.Paths {
		dir := filepath.Join(root, jobs.Tree().Dir(group))
		wd, err := unix.InotifyAddWatch(w.fd, dir, unix.IN_MODIFY)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("watch %s: %w", dir, err), unix.Close(w.fd), unix.Close(w.stop))
		}
		w.groups[int32(wd)] = jobs.Inodes[i]
	}
	go w.run()
	return w, nil
}

// run reads until it is stopped, before all ordinary work of the machine: what delays it would count as the agent's.
func (w *watch) run() {
	defer close(w.done)
	runtime.LockOSThread() // the thread ends with the goroutine
	attr := unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 3, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		w.fail(fmt.Errorf("real-time priority: %w", err))
		return
	}
	fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}, {Fd: int32(w.stop), Events: unix.POLLIN}}
	var buf [1 << 16]byte
	for {
		_, err := unix.Poll(fds, -1)
		at := probe.Monotonic()
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || fds[1].Revents != 0 {
			w.fail(err)
			return
		}
		n, err := unix.Read(w.fd, buf[:])
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			w.fail(err)
			return
		}
		w.take(buf[:max(0, n)], at)
	}
}

func (w *watch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// take books the events of one read (inotify(7), struct inotify_event).
func (w *watch) take(data []byte, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(data) >= unix.SizeofInotifyEvent {
		wd, mask := int32(binary.NativeEndian.Uint32(data)), binary.NativeEndian.Uint32(data[4:])
		end := min(len(data), unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(data[12:])))
		file := strings.TrimRight(string(data[unix.SizeofInotifyEvent:end]), "\x00")
		data = data[end:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			w.err = errors.New("inotify lost events")
		}
		if group := w.groups[wd]; group != 0 && strings.HasPrefix(file, "cpu.") {
			w.list = append(w.list, write{group, at})
		}
	}
}

// collect returns the writes since it was last called.
func (w *watch) collect() ([]write, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.list
	w.list = nil
	if w.err != nil {
		return nil, fmt.Errorf("watch writes: %w", w.err)
	}
	return list, nil
}

// close ends the thread.
func (w *watch) close() error {
	_, err := unix.Write(w.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	<-w.done
	return errors.Join(err, unix.Close(w.fd), unix.Close(w.stop))
}
