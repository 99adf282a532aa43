package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk is the directory that holds a journal. Dir is the real one, Memory one without files.
type Disk interface {
	Open(name string) (io.ReadCloser, error)
	// Append opens an existing file; what is written goes to its end.
	Append(name string) (File, error)
	// Create makes an empty file, also where one was.
	Create(name string) (File, error)
	Rename(from, to string) error
	// Sync makes names that were created or renamed last a crash of the machine.
	Sync() error
}

// File is a file that is written to.
type File interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// Dir is a directory of the operating system. Only its owner can list it and read its files. Others may pass through
// it: the agent's socket for readers is in it.
type Dir string

const (
	dirMode  fs.FileMode = 0o711
	fileMode fs.FileMode = 0o600
)

// make creates the directory, and syncs the one that it is in.
func (d Dir) make() error {
	if _, err := os.Stat(string(d)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(string(d), dirMode); err != nil {
		return err
	}
	return Dir(filepath.Dir(string(d))).Sync()
}

func (d Dir) path(name string) string { return filepath.Join(string(d), name) }

// Open implements Disk.
func (d Dir) Open(name string) (io.ReadCloser, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err // and no ReadCloser that holds a nil *os.File
	}
	return f, nil
}

// Append implements Disk.
func (d Dir) Append(name string) (File, error) {
	return open(d.path(name), os.O_WRONLY|os.O_APPEND)
}

// Create implements Disk.
func (d Dir) Create(name string) (File, error) {
	return open(d.path(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_TRUNC)
}

// open never returns a File that holds a nil *os.File.
func open(path string, flags int) (File, error) {
	f, err := os.OpenFile(path, flags, fileMode)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Rename implements Disk.
func (d Dir) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

// Sync implements Disk.
func (d Dir) Sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return fmt.Errorf("sync %s: %w", d, err)
	}
	return f.Close()
}
