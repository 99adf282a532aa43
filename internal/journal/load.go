package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// VersionError is met when a journal was written by a newer plimsoll. The journal is left as it is.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the format has version %d, this plimsoll knows up to %d", e.Version, version)
}

// Hint says what a person can do.
func (e *VersionError) Hint() string {
	return "run `plimsoll restore` of the version that wrote it; then this one can start"
}

// ForeignError is met when the file does not begin as a journal does: somebody else wrote it, or it was damaged there.
type ForeignError struct{}

func (*ForeignError) Error() string { return "the file " + fileName + " is not a journal of plimsoll" }

// Hint says what a person can do.
func (*ForeignError) Hint() string {
	return "move the file away and call this again; what it knew of cannot be put back: `plimsoll restore " +
		"--to-spec` repairs " +
		"limits that their owners have declared"
}

// State is a journal that was read and not opened.
type State struct {
	BootID  string
	Entries []Entry
	Notes   []string
}

// Load reads a journal without changing anything, also beside a process that has it open. No journal is an empty
// state.
func Load(dir string) (State, error) {
	s, err := LoadDisk(Dir(dir))
	if err != nil {
		return State{}, fmt.Errorf("state directory %s: %w", dir, err)
	}
	return s, nil
}

// Left is what an agent has written since the machine was started, one that runs or was killed. The groups of an
// earlier boot are gone.
func Left(dir string) ([]Entry, error) {
	state, err := Load(dir)
	if err != nil {
		return nil, err
	}
	boot, err := BootID()
	if err != nil {
		return nil, fmt.Errorf("read the boot ID: %w", err)
	}
	if state.BootID != boot {
		return nil, nil
	}
	return state.Entries, nil
}

// LoadDisk is Load for any disk.
func LoadDisk(disk Disk) (State, error) {
	c, err := read(disk, readers())
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if errors.Is(err, errTornHeader) {
		return State{Notes: []string{err.Error()}}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("read the journal: %w", err)
	}
	return State{BootID: c.BootID, Entries: c.table.sorted(), Notes: c.notes}, nil
}

// BootID identifies this boot of the machine (Documentation/admin-guide/sysctl/kernel.rst, random).
func BootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}
