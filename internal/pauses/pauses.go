// Package pauses keeps the groups that an operator holds at their limits, in a file.
package pauses

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"plimsoll/internal/atomicfile"
)

// Pauses are the groups that an operator holds at their limits, and until when. They are kept in a file, so that a
// restart of the agent does not end a pause in the middle of a load test.
type Pauses struct {
	file  string
	until map[string]time.Time // by cgroup path
	// released are those that step aside for another writer. A restart forgets that, and calls the rest of it a pause.
	released map[string]bool
}

// New has none; it keeps what it is told in memory when file is "".
func New(file string) *Pauses {
	return &Pauses{file: file, until: map[string]time.Time{}, released: map[string]bool{}}
}

// Load reads the pauses of a state directory.
func Load(stateDir string) (*Pauses, error) {
	p := New(filepath.Join(stateDir, "pauses.json"))
	data, err := os.ReadFile(p.file)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pauses: %w", err)
	}
	if err = json.Unmarshal(data, &p.until); err == nil && p.until == nil {
		err = errors.New("no object")
	}
	if err != nil {
		return nil, &BrokenError{p.file, err}
	}
	return p, nil
}

// BrokenError says that the file of the pauses cannot be understood.
type BrokenError struct {
	File string
	Err  error
}

func (e *BrokenError) Error() string { return fmt.Sprintf("read pauses: %s: %v", e.File, e.Err) }

// Hint says what a person can do.
func (e *BrokenError) Hint() string { return "remove the file; that ends all pauses" }

func (e *BrokenError) Unwrap() error { return e.Err }

// Empty says that no group is.
func (p *Pauses) Empty() bool { return len(p.until) == 0 }

// Paused says whether a group is paused or released.
func (p *Pauses) Paused(path string, now time.Time) bool {
	until, ok := p.until[path]
	return ok && now.Before(until)
}

// Until is when the pause of a group ends, and whether it is a release; false: the group is not paused.
func (p *Pauses) Until(path string, now time.Time) (until time.Time, released, paused bool) {
	return p.until[path], p.released[path], p.Paused(path, now)
}

// Copy is one of its own that holds the same, and keeps it in memory.
func (p *Pauses) Copy() *Pauses {
	return &Pauses{until: maps.Clone(p.until), released: maps.Clone(p.released)}
}

// Set begins a pause or a release, or ends it where until is not after now. What cannot be kept on disk changes
// nothing, but for a release.
func (p *Pauses) Set(path string, until, now time.Time, release bool) error {
	before := p.Copy()
	for old, end := range p.until {
		if !end.After(now) {
			p.end(old)
		}
	}
	p.end(path)
	if until.After(now) {
		p.until[path] = until
		if release {
			p.released[path] = true
		}
	}
	err := p.save()
	if err != nil && !release {
		p.until, p.released = before.until, before.released
	}
	return err
}

func (p *Pauses) end(path string) {
	delete(p.until, path)
	delete(p.released, path)
}

// save replaces the file at once: an agent that finds a broken one does not start.
func (p *Pauses) save() error {
	if p.file == "" {
		return nil
	}
	data, err := json.Marshal(p.until)
	if err != nil {
		return err
	}
	if err = atomicfile.Write(p.file, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("save pauses: %w", err)
	}
	return nil
}
