//go:build kube

package kube

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/probe"
	"plimsoll/lab/frame"
	"plimsoll/lab/peers"
)

// observer sees when a container and its pod are throttled, and that their limits are written, by whomever.
type observer struct {
	t      *testing.T
	probe  *probe.Probe
	notify *os.File
	marks  map[int32]string // of the watched files
	names  map[string]peers.Touch
	before map[[2]string]string
	read   sync.WaitGroup
	begin  time.Duration

	mu      sync.Mutex
	touches []peers.Touch
}

// limitFiles are those that an agent writes.
func limitFiles() map[string]string {
	if cluster.groups.Version() == cgroup.V2 {
		return map[string]string{"cpu.max": "quota", "cpu.max.burst": "burst"}
	}
	return map[string]string{"cpu.cfs_quota_us": "quota", "cpu.cfs_burst_us": "burst"}
}

// observe begins with the pod and its container.
func (p *pod) observe(container string) *observer {
	p.t.Helper()
	o := &observer{t: p.t, marks: map[int32]string{}, names: map[string]peers.Touch{}, before: map[[2]string]string{}}
	var inodes []uint64
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		p.t.Fatal(err)
	}
	o.notify = os.NewFile(uintptr(fd), "inotify") // its reads wait, for it does not block
	for name, at := range map[string]string{"container": p.containers[container], "pod": p.path} {
		inode, err := cluster.groups.Inode(at)
		if err != nil {
			p.t.Fatal(err)
		}
		inodes = append(inodes, inode)
		for file, kind := range limitFiles() {
			full := filepath.Join(groupDir(at), file)
			mark, err := unix.InotifyAddWatch(fd, full, unix.IN_MODIFY)
			if err != nil {
				p.t.Fatal(err)
			}
			o.marks[int32(mark)], o.names[full] = full, peers.Touch{Group: name, File: kind}
			text, err := os.ReadFile(full)
			if err != nil {
				p.t.Fatal(err)
			}
			o.before[[2]string{name, kind}] = string(text)
		}
	}
	if o.probe, err = frame.Listen(inodes); err != nil {
		p.t.Fatal(err)
	}
	o.begin = probe.Monotonic()
	o.read.Go(o.follow)
	return o
}

// follow reads events until the end. The instant of one is that at which it is read.
func (o *observer) follow() {
	var buf [4096]byte
	for {
		n, err := o.notify.Read(buf[:])
		if err != nil {
			return
		}
		o.take(buf[:n], probe.Monotonic())
	}
}

func (o *observer) take(data []byte, at time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(data) >= unix.SizeofInotifyEvent {
		mark, mask := int32(binary.NativeEndian.Uint32(data)), binary.NativeEndian.Uint32(data[4:])
		data = data[unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(data[12:])):]
		if mask&unix.IN_MODIFY != 0 {
			touch := o.names[o.marks[mark]]
			touch.At = at
			text, _ := os.ReadFile(o.marks[mark]) // of a group that is gone, nothing is said
			touch.Value = string(text)
			o.touches = append(o.touches, touch)
		}
		if mask&unix.IN_Q_OVERFLOW != 0 {
			o.t.Error("writes to the limits were lost")
		}
	}
}

// seen is what an observer saw.
type seen struct {
	throttles  []peers.Throttle
	touches    []peers.Touch
	before     map[[2]string]string
	begin, end time.Duration
}

func (s seen) effect() peers.Effect { return peers.FirstEffect(s.throttles, s.touches, s.before) }

func (s seen) stood() time.Duration { return peers.Stood(s.throttles, s.begin, s.end) }

// end ends the observation.
func (o *observer) end() seen {
	o.t.Helper()
	s := seen{begin: o.begin, end: probe.Monotonic()}
	events, err := frame.Collect(o.probe, s.end)
	err = errors.Join(err, o.probe.Close(), o.notify.Close())
	o.read.Wait()
	if err != nil {
		o.t.Fatal(err)
	}
	s.throttles, s.touches, s.before = peers.Throttles(events, s.end), o.touches, o.before
	return s
}
