package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"plimsoll/internal/config"
)

// source is where the configuration comes from: a file, or flags.
type source struct {
	file    string
	policy  string
	include []string
}

// load reads and checks it. Flags are laid over a file.
func (s source) load() (*config.File, error) {
	if s.file == "" {
		return config.FromFlags(s.policy, s.include)
	}
	if s.policy != "" || len(s.include) > 0 {
		return nil, withHint(fmt.Errorf("--config does not go with --policy or --include"), "write `strategy: {policy: ...}` and `include: [...]` into the file")
	}
	data, err := os.ReadFile(s.file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return config.Parse(s.file, data)
}

// reloadEvery is how often the file is looked at. Looking at it finds every way of replacing it: editors and
// ConfigMap mounts rename, and a watch on the file would be left with the old one.
const reloadEvery = 250 * time.Millisecond

// follow hands every version of the file after the one with the stamp last to take, or the error that keeps the last
// good one in force.
func (s source) follow(ctx context.Context, last stamp, take func(*config.File, error)) error {
	if s.file == "" {
		return nil
	}
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if now := s.stamp(); now != last {
			last = now
			take(s.load())
		}
	}
}

// stamp tells versions of a file apart.
type stamp struct {
	modified time.Time
	size     int64
	inode    uint64
}

func (s source) stamp() stamp {
	info, err := os.Stat(s.file)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size(), inodeOf(info)}
}

func inodeOf(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
