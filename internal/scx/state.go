package scx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// State is what the kernel says of sched_ext (/sys/kernel/sched_ext).
type State struct {
	State    string `json:"state"`         // `enabling`, `enabled`, `disabling` or `disabled`
	Ops      string `json:"ops,omitempty"` // the name of the scheduler that is loaded
	Enabled  int64  `json:"enabled"`       // schedulers loaded since boot (enable_seq)
	Rejected int64  `json:"rejected"`      // tasks of policy SCHED_EXT that a partial scheduler rejected (nr_rejected)
	All      bool   `json:"all,omitempty"` // it runs all tasks, not only those of policy SCHED_EXT
}

const (
	disabled  = "disabled"
	disabling = "disabling"
	enabled   = "enabled"
	folder    = "kernel/sched_ext"
)

// Overrules says whether a scheduler runs all tasks, so that the kernel enforces no limit of theirs.
func (s State) Overrules() bool { return s.State == enabled && s.All }

// ErrNotThere is a kernel without sched_ext.
var ErrNotThere = errors.New("this kernel has no sched_ext (mainline has it since 6.12, with CONFIG_SCHED_CLASS_EXT)")

// ReadState reads the running kernel's state.
func ReadState() (State, error) { return readState("/sys") }

func readState(sys string) (State, error) {
	text := func(name string) (string, error) {
		data, err := os.ReadFile(filepath.Join(sys, folder, name))
		return strings.TrimSpace(string(data)), err
	}
	var s State
	var err error
	if s.State, err = text("state"); errors.Is(err, fs.ErrNotExist) {
		return s, ErrNotThere
	} else if err != nil {
		return s, fmt.Errorf("read the state of sched_ext: %w", err)
	}
	if s.Ops, err = text("root/ops"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("read the name of the scheduler: %w", err)
	}
	for name, to := range map[string]*int64{"enable_seq": &s.Enabled, "nr_rejected": &s.Rejected} {
		word, err := text(name)
		if err != nil {
			return s, fmt.Errorf("read the state of sched_ext: %w", err)
		}
		if *to, err = strconv.ParseInt(word, 10, 64); err != nil {
			return s, fmt.Errorf("parse %s of sched_ext: %w", name, err)
		}
	}
	all, err := text("switch_all")
	if err != nil {
		return s, fmt.Errorf("read the state of sched_ext: %w", err)
	}
	s.All = all == "1"
	return s, nil
}
