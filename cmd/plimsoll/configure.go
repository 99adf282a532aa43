package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"plimsoll/internal/config"
	"plimsoll/internal/hint"
)

// source is the source of the configuration: a file, or flags.
type source struct {
	file    string
	policy  string
	include []string
	rereads <-chan os.Signal // has a value when the file must be read again, changed or not; nil: never
}

// load reads and checks it. Flags are laid over a file.
func (s source) load() (*config.File, error) {
	if s.file == "" {
		file, err := config.FromFlags(s.policy, s.include)
		return file, hint.Misuse(err)
	}
	if s.policy != "" || len(s.include) > 0 {
		return nil, withHint(misusef("--config does not go with --policy or --include"), "write `strategy: {policy: ...}` and `include: [...]` into the file")
	}
	data, err := os.ReadFile(s.file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return config.Parse(s.file, data)
}

// follow passes every version of the file after the one with the stamp last to take, or the error that keeps the last
// good one in force. It checks the file after each of the agent's turns, of which there is one a second at least: a
// timer of its own would wake an idle process twice as often. A check finds every way of replacing the file: editors
// and ConfigMap mounts rename, and a watch on the file would be left with the old one. A version must be stable for a
// moment: a program that writes the file in place empties it first. A request to reread reads the file though it is the
// same.
func (s source) follow(ctx context.Context, turns <-chan struct{}, last stamp, take func(*config.File, error)) error {
	if s.file == "" {
		return nil
	}
	for {
		asked := false
		select {
		case <-ctx.Done():
			return nil
		case <-s.rereads:
			asked = true
		case <-turns:
		}
		if asked || s.stamp() != last {
			last = s.stable(ctx)
			take(s.loadAgain())
		}
	}
}

// stableTime is how long a version must be unchanged.
const stableTime = 50 * time.Millisecond

// stable waits until the file does not change any more.
func (s source) stable(ctx context.Context) stamp {
	for now := s.stamp(); ; {
		select {
		case <-ctx.Done():
			return now
		case <-time.After(stableTime):
		}
		before := now
		if now = s.stamp(); now == before {
			return now
		}
	}
}

// loadAgain does not wait for a pipe in the file's place: the agent could not end.
func (s source) loadAgain() (*config.File, error) {
	if info, err := os.Stat(s.file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read the configuration: %s is not a regular file", s.file)
	}
	return s.load()
}

// stamp identifies a version of a file.
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
