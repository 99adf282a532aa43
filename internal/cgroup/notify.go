package cgroup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Notify counts writes to the quota files of groups by any process (inotify). A write through any descriptor counts
// (fs/read_write.c: vfs_write calls fsnotify_modify also for kernfs). A write is counted when the file is closed,
// because opening with O_TRUNC looks like a write. A Notify is for one goroutine.
type Notify struct {
	tree   *Tree
	root   string
	fd     int
	groups map[int32]string // by watch
	marks  map[string]int32
	open   map[string]bool // written, and not closed since
}

// NewNotify watches nothing yet. root is where the tree is mounted.
func NewNotify(tree *Tree, root string) (*Notify, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w; hint: raise fs.inotify.max_user_instances", err)
	}
	return &Notify{tree: tree, root: root, fd: fd, groups: map[int32]string{}, marks: map[string]int32{},
		open: map[string]bool{}}, nil
}

// Close ends all watches.
func (n *Notify) Close() error { return unix.Close(n.fd) }

func (t *Tree) quotaFile() string {
	if t.version == V2 {
		return "cpu.max"
	}
	return "cpu.cfs_quota_us"
}

// Watch counts the writes to a group's quota file from now on.
func (n *Notify) Watch(group string) error {
	n.Unwatch(group)
	file := filepath.Join(n.root, n.tree.Dir(group), n.tree.quotaFile())
	wd, err := unix.InotifyAddWatch(n.fd, file, unix.IN_MODIFY|unix.IN_CLOSE_WRITE)
	if errors.Is(err, unix.ENOSPC) {
		err = fmt.Errorf("%w; hint: raise fs.inotify.max_user_watches", err)
	}
	if err != nil {
		return fmt.Errorf("watch %s: %w", file, err)
	}
	n.groups[int32(wd)], n.marks[group] = group, int32(wd)
	return nil
}

// Unwatch ends the count of a group's writes.
func (n *Notify) Unwatch(group string) {
	if wd, ok := n.marks[group]; ok {
		_, _ = unix.InotifyRmWatch(n.fd, uint32(wd)) // the error says that the file is gone
		n.forget(wd)
	}
}

func (n *Notify) forget(wd int32) {
	group := n.groups[wd]
	delete(n.groups, wd)
	delete(n.marks, group)
	delete(n.open, group)
}

// Writes returns the number of writes since the last call, by group: how often a file was closed after a write. It does
// not block. When lost is true, some writes are missing.
func (n *Notify) Writes() (counts map[string]int, lost bool) {
	counts = map[string]int{}
	var buf [4096]byte
	for {
		size, err := retry(func() (int, error) { return unix.Read(n.fd, buf[:]) })
		if err != nil || size <= 0 {
			break // EAGAIN
		}
		lost = n.take(buf[:size], counts) || lost
	}
	return counts, lost
}

// take counts the events of one read.
func (n *Notify) take(data []byte, counts map[string]int) (lost bool) {
	for len(data) >= unix.SizeofInotifyEvent {
		wd, mask := int32(binary.NativeEndian.Uint32(data)), binary.NativeEndian.Uint32(data[4:])
		data = data[min(len(data), unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(data[12:]))):]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			lost = true
			continue
		}
		group, ok := n.groups[wd]
		switch {
		case !ok:
		case mask&unix.IN_IGNORED != 0:
			n.forget(wd)
		case mask&unix.IN_MODIFY != 0:
			n.open[group] = true
		case n.open[group]: // IN_CLOSE_WRITE; without a write before it, it changed nothing
			counts[group]++
			delete(n.open, group)
		}
	}
	return lost
}
