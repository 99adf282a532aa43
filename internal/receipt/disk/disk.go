// Package disk keeps the experiments of an agent (package receipt) in a file, so that the next agent goes on with them.
//
// Approach: the file is replaced whole, once a minute where something has changed, and at the end of the agent, by a
// goroutine of its own: neither a refill nor a turn waits for the disk.
// It holds the groups that have an experiment, and no others.
//
// An agent that cannot use the file begins its experiments anew, and says so once. One that cannot write it goes on
// without, says so once, and shows it as a problem until the file is written again.
//
// Known limits: what happened since the file was last written is lost in a crash.
package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"plimsoll/internal/atomicfile"
	"plimsoll/internal/policy"
)

// FileName is the name of the file in the state directory.
const FileName = "receipts.json"

// version of the format. A later one is not read: what it means is not known.
const version = 1

const (
	every = time.Minute     // how often the file is written at most
	last  = 3 * time.Second // for the disk, as the agent ends
	// mostBytes is more than the experiments of any node: 10,000 containers with 1.5 kB.
	mostBytes = 16 << 20
)

// Agent has the experiments.
type Agent interface {
	KeptReceipts() policy.KeptReceipts
	// ResumeReceipts refuses figures that no experiment has. It is called before the first turn.
	ResumeReceipts(policy.KeptReceipts) error
}

// content is what the file holds.
type content struct {
	Version int    `json:"version"`
	Boot    string `json:"boot"` // its inodes are of this boot of the machine
	policy.KeptReceipts
}

// BrokenError says that the file cannot be used.
type BrokenError struct {
	File string
	Err  error
}

func (e *BrokenError) Error() string { return fmt.Sprintf("read receipts: %s: %v", e.File, e.Err) }

// Hint says what a person can do.
func (e *BrokenError) Hint() string {
	return "nothing has to be done; containers whose refills were withdrawn are refilled again: policy none, set " +
		"for such a container, prevents it"
}

func (e *BrokenError) Unwrap() error { return e.Err }

// errBoot says that the file is of another boot.
var errBoot = errors.New("of another boot, and so were its containers")

// File is the file of an agent.
type File struct {
	path, boot string
	agent      Agent
	log        *slog.Logger
	written    []byte // what the file holds; nil: none of this agent's

	mu      sync.Mutex
	problem string // why it was not written; "": it was
}

// Open has an agent go on with what the file in its state directory holds of this boot.
func Open(dir, boot string, a Agent, log *slog.Logger) *File {
	f := &File{path: filepath.Join(dir, FileName), boot: boot, agent: a, log: log}
	err := f.resume()
	var broken *BrokenError
	switch {
	case errors.Is(err, errBoot):
		log.Info("receipts begin anew", "why", err, "hint", "nothing has to be done")
	case errors.As(err, &broken):
		log.Warn("receipts begin anew: those of the agent before are lost", "error", err, "hint", broken.Hint())
	}
	return f
}

// resume reads the file. Every error but a file that is not there is a BrokenError.
func (f *File) resume() error {
	data, err := read(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var c content
	if err == nil {
		c, err = decode(data, f.boot)
	}
	if err == nil {
		err = f.agent.ResumeReceipts(c.KeptReceipts)
	}
	if err != nil {
		return &BrokenError{f.path, err}
	}
	return nil
}

// read reads a file that is not larger than any that the agent writes.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, mostBytes+1))
	if err == nil && len(data) > mostBytes {
		err = fmt.Errorf("more than %d MiB", mostBytes>>20)
	}
	return data, err
}

// decode looks at the version first: another one may have other fields.
func decode(data []byte, boot string) (c content, err error) {
	var head struct {
		Version int    `json:"version"`
		Boot    string `json:"boot"`
	}
	if err = json.Unmarshal(data, &head); err != nil {
		return c, err
	}
	switch {
	case head.Version != version:
		return c, fmt.Errorf("version %d of the format; this agent reads version %d", head.Version, version)
	case head.Boot != boot:
		return c, errBoot
	}
	return c, json.Unmarshal(data, &c)
}

// Run writes the file until the context ends, and then once more. It never ends the agent, and a disk that hangs does
// not keep the agent from its end.
func (f *File) Run(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ended := false; !ended; f.save() {
			select {
			case <-tick.C:
			case <-ctx.Done():
				ended = true
			}
		}
	}()
	<-ctx.Done()
	select {
	case <-done:
	case <-time.After(last):
	}
	return nil
}

// save writes the file where something has changed.
func (f *File) save() {
	kept := f.agent.KeptReceipts()
	if kept.Empty() {
		return
	}
	data, err := json.Marshal(content{version, f.boot, kept})
	if err == nil && bytes.Equal(data, f.written) {
		return
	}
	if err == nil {
		err = atomicfile.Write(f.path, append(data, '\n'), 0o600)
	}
	if err == nil {
		f.written = data
	}
	f.note(err)
}

// note says once that the file cannot be written, and once that it can.
func (f *File) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil && f.problem != "":
		f.log.Info("the receipts are kept again", "file", f.path)
	case err != nil && f.problem == "":
		f.log.Warn("the receipts are not kept: a restart of the agent begins them anew", "error", err)
	}
	if f.problem = ""; err != nil {
		f.problem = err.Error()
	}
}

// Problem says why the file was not written; "": it was, or there is nothing to keep.
func (f *File) Problem() string {
	if f == nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problem
}
