package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"plimsoll/internal/experiment"
)

// fullDisk is a state directory on a file system on which no byte is left.
type fullDisk struct {
	burst
	state string
}

func (d *fullDisk) prepare(_ context.Context, b *bench, s *experiment.Setup) error {
	state := b.place("full")
	if err := os.MkdirAll(state, 0o755); err != nil {
		return err
	}
	if err := mountMemory(state, 8<<20); err != nil {
		return err
	}
	d.state, s.State = state, state
	return nil
}

func (d *fullDisk) begin(_ context.Context, b *bench, a *experiment.Agent) error {
	f, err := os.Create(filepath.Join(d.state, "ballast"))
	if err != nil {
		return err
	}
	page := bytes.Repeat([]byte{1}, os.Getpagesize())
	for err == nil {
		_, err = f.Write(page)
	}
	if closed := f.Close(); !errors.Is(err, unix.ENOSPC) || closed != nil {
		return fmt.Errorf("fill the disk: %w", errors.Join(err, closed))
	}
	return a.Configure(d.configure(b, true))
}

func (d *fullDisk) end() error {
	if d.state == "" {
		return nil
	}
	err := errors.Join(os.RemoveAll(filepath.Join(d.state, "ballast")), unmount(d.state))
	d.state = ""
	return err
}

// slowDisk is a state directory on a file system in which each fsync takes a while: FUSE, over a directory in memory.
// All else is as fast as FUSE is, and names and attributes are cached as those of a file system on a disk are.
type slowDisk struct {
	burst
	mounted string
	takes   atomic.Int64
}

const fsyncTakes = 50 * time.Millisecond

func (d *slowDisk) prepare(_ context.Context, b *bench, s *experiment.Setup) error {
	d.takes.Store(0)
	below, mounted := b.place("below"), b.place("slow")
	for _, dir := range []string{below, mounted} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	root := &fs.LoopbackNode{RootData: &fs.LoopbackRoot{Path: below}}
	cached := time.Minute
	_, err := fs.Mount(mounted, &slowNode{root, &d.takes}, &fs.Options{
		EntryTimeout: &cached, AttrTimeout: &cached, NegativeTimeout: &cached,
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "plimsoll-slow", Name: "slow"}})
	if err != nil {
		return experiment.WithHint(fmt.Errorf("mount a slow disk: %w", err), "FUSE is needed (/dev/fuse)")
	}
	d.mounted, s.State = mounted, mounted
	return nil
}

func (d *slowDisk) begin(_ context.Context, b *bench, a *experiment.Agent) error {
	d.takes.Store(int64(fsyncTakes))
	return a.Configure(d.configure(b, true))
}

// end makes the disk fast first: what waits for it is over soon.
func (d *slowDisk) end() error {
	d.takes.Store(0)
	if d.mounted == "" {
		return nil
	}
	err := unmount(d.mounted)
	d.mounted = ""
	return err
}

// slowNode is a file or directory of the slow disk.
type slowNode struct {
	*fs.LoopbackNode
	takes *atomic.Int64
}

var (
	_ fs.NodeFsyncer     = (*slowNode)(nil)
	_ fs.NodeWrapChilder = (*slowNode)(nil)
)

// WrapChild implements fs.NodeWrapChilder.
func (n *slowNode) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &slowNode{child.(*fs.LoopbackNode), n.takes}
}

// Fsync implements fs.NodeFsyncer.
func (n *slowNode) Fsync(ctx context.Context, _ fs.FileHandle, _ uint32) syscall.Errno {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(n.takes.Load())):
	}
	return 0
}
