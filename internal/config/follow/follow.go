// Package follow sees every version of a configuration file.
package follow

import (
	"context"
	"os"
	"syscall"
	"time"
)

// Versions calls take for each version of the file after the one with the stamp last. It checks the file after each of
// the agent's turns, of which there is one a second at least: a timer of its own would wake an idle process twice as
// often. A check finds every way of replacing the file: editors and ConfigMap mounts rename, and a watch on the file
// would be left with the old one. A version must be stable for a moment: a program that writes the file in place
// empties it first. A request to reread takes the file though it is the same.
func Versions(ctx context.Context, file string, last Stamp, turns <-chan struct{}, rereads <-chan os.Signal,
	take func()) {
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-rereads:
			asked = true
		case <-turns:
		}
		if asked || Of(file) != last {
			last = stable(ctx, file)
			take()
		}
	}
}

// stableTime is how long a version must be unchanged.
const stableTime = 50 * time.Millisecond

// stable waits until the file does not change any more.
func stable(ctx context.Context, file string) Stamp {
	for now := Of(file); ; {
		select {
		case <-ctx.Done():
			return now
		case <-time.After(stableTime):
		}
		before := now
		if now = Of(file); now == before {
			return now
		}
	}
}

// Stamp identifies a version of a file.
type Stamp struct {
	modified time.Time
	size     int64
	inode    uint64
}

// Of is the stamp of a file; zero where there is none.
func Of(file string) Stamp {
	info, err := os.Stat(file)
	if err != nil {
		return Stamp{}
	}
	return Stamp{info.ModTime(), info.Size(), inodeOf(info)}
}

func inodeOf(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
