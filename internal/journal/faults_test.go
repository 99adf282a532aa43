package journal

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"syscall"
)

// errCrash is what every operation of a dead process "returns".
var errCrash = errors.New("the process is dead")

type fault int

const (
	failOnce  fault = iota // one operation fails and does nothing
	failLong               // ten operations in a row fail: a full disk
	shortOnce              // a write stops half way
	shortLong              // the same, and then nine operations fail
	crash                  // the process dies half way through the operation
)

// faultyDisk is a disk whose at-th changing operation goes wrong. It knows what a crash of the machine would leave:
// what was synced, under the names that were synced.
type faultyDisk struct {
	names, durable map[string]*inode
	fault          fault
	at, step       int // steps count from 1; at 0 never happens
}

type inode struct {
	disk         *faultyDisk
	data, synced []byte
}

func newFaultyDisk(f fault, at int) *faultyDisk {
	return &faultyDisk{names: map[string]*inode{}, durable: map[string]*inode{}, fault: f, at: at}
}

// next counts an operation. half says that it is done by half before it fails.
func (d *faultyDisk) next() (half bool, err error) {
	d.step++
	since := d.step - d.at
	if d.at == 0 || since < 0 {
		return false, nil
	}
	switch d.fault {
	case failOnce, failLong:
		if since == 0 || d.fault == failLong && since < 10 {
			return false, syscall.EIO
		}
	case shortOnce, shortLong:
		if since == 0 || d.fault == shortLong && since < 10 {
			return since == 0, syscall.ENOSPC
		}
	case crash:
		return since == 0, errCrash
	}
	return false, nil
}

func (d *faultyDisk) Open(name string) (io.ReadCloser, error) {
	n, ok := d.names[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(slices.Clone(n.data))), nil
}

func (d *faultyDisk) Append(name string) (File, error) {
	n, ok := d.names[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return n, nil
}

func (d *faultyDisk) Create(name string) (File, error) {
	if _, err := d.next(); err != nil {
		return nil, err
	}
	d.names[name] = &inode{disk: d}
	return d.names[name], nil
}

func (d *faultyDisk) Rename(from, to string) error {
	half, err := d.next()
	if err == nil || half && d.fault == crash { // done, but the process dies before the call returns
		d.names[to] = d.names[from]
		delete(d.names, from)
	}
	return err
}

func (d *faultyDisk) Sync() error {
	if _, err := d.next(); err != nil {
		return err
	}
	d.durable = map[string]*inode{}
	for name, n := range d.names {
		d.durable[name] = n
	}
	return nil
}

func (n *inode) Write(data []byte) (int, error) {
	half, err := n.disk.next()
	switch {
	case half:
		data = data[:len(data)/2]
	case err != nil:
		return 0, err
	}
	n.data = append(n.data, data...)
	return len(data), err
}

func (n *inode) Sync() error {
	if _, err := n.disk.next(); err != nil {
		return err
	}
	n.synced = append([]byte(nil), n.data...)
	return nil
}

func (n *inode) Truncate(size int64) error {
	if _, err := n.disk.next(); err != nil {
		return err
	}
	n.data = n.data[:size]
	return nil
}

func (n *inode) Close() error { return nil }

// afterProcessCrash is the disk as the next process finds it.
func (d *faultyDisk) afterProcessCrash() *Memory {
	m := NewMemory()
	for name, n := range d.names {
		m.files[name] = &memoryFile{disk: m, data: append([]byte(nil), n.data...)}
	}
	return m
}

// afterPowerLoss is the disk as the next boot finds it.
func (d *faultyDisk) afterPowerLoss() *Memory {
	m := NewMemory()
	for name, n := range d.durable {
		m.files[name] = &memoryFile{disk: m, data: append([]byte(nil), n.synced...)}
	}
	return m
}
