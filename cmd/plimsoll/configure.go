package main

import (
	"context"
	"fmt"
	"os"

	"plimsoll/internal/config"
	"plimsoll/internal/config/follow"
	"plimsoll/internal/exclusive"
	"plimsoll/internal/hint"
	"plimsoll/internal/host"
	"plimsoll/internal/kubelet"
	"plimsoll/internal/sysfs"
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
		return nil, withHint(misusef("--config does not go with --policy or --include"),
			"write `strategy: {policy: ...}` and `include: [...]` into the file")
	}
	data, err := os.ReadFile(s.file)
	if err != nil {
		return nil, withHint(fmt.Errorf("read the configuration: %w", err),
			"name a YAML file that you may read (docs/CONFIG.md has its keys), or leave --config out")
	}
	return config.Parse(s.file, data)
}

// follow passes every version of the file to take, or the error that keeps the last good one in force.
func (s source) follow(ctx context.Context, turns <-chan struct{}, last follow.Stamp,
	take func(*config.File, error)) error {
	if s.file == "" {
		return nil
	}
	follow.Versions(ctx, s.file, last, turns, s.rereads, func() { take(s.loadAgain()) })
	return nil
}

// loadAgain does not wait for a pipe in the file's place: the agent could not end.
func (s source) loadAgain() (*config.File, error) {
	if info, err := os.Stat(s.file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read the configuration: %s is not a regular file", s.file)
	}
	return s.load()
}

// reserving are the facts about this machine that the agent needs to give containers exclusive CPUs.
func reserving(file *config.File) exclusive.Options {
	k, h := kubelet.OfHost(), sysfs.NewHost("/")
	return exclusive.Options{Topology: (&host.Layout{Host: h}).Topology, Owner: k.Owner, Kept: k.Reserved,
		Isolated: h.Isolated(), Rules: file.Reserve()}
}
