package journal

import (
	"bytes"
	"io"
	"io/fs"
	"sync"
)

// Memory is a disk without files, for simulated kernels: it outlives the Journal as a directory would.
type Memory struct {
	mu    sync.Mutex
	files map[string]*memoryFile
}

// NewMemory is an empty disk.
func NewMemory() *Memory { return &Memory{files: map[string]*memoryFile{}} }

type memoryFile struct {
	disk *Memory
	data []byte
}

// Open implements Disk.
func (m *Memory) Open(name string) (io.ReadCloser, error) {
	data, err := m.ReadFile(name)
	return io.NopCloser(bytes.NewReader(data)), err
}

// ReadFile is the content of a file.
func (m *Memory) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return append([]byte(nil), f.data...), nil
}

// Append implements Disk.
func (m *Memory) Append(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return f, nil
}

// Create implements Disk.
func (m *Memory) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &memoryFile{disk: m}
	m.files[name] = f
	return f, nil
}

// Rename implements Disk.
func (m *Memory) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.files[from]
	if !ok {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	delete(m.files, from)
	m.files[to] = f
	return nil
}

// Sync implements Disk.
func (m *Memory) Sync() error { return nil }

func (f *memoryFile) Write(data []byte) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.data = append(f.data, data...)
	return len(data), nil
}

func (f *memoryFile) Sync() error { return nil }

func (f *memoryFile) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.data = f.data[:size]
	return nil
}

func (f *memoryFile) Close() error { return nil }
