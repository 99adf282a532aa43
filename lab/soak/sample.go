package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
)

// sample is what the agent holds at one moment.
type sample struct {
	At         time.Duration `json:"at_ns"`  // since the soak's begin
	Life       int           `json:"life"`   // of the agent, from 0
	Age        time.Duration `json:"age_ns"` // of that agent
	Steady     bool          `json:"steady"` // the API server has been answering for a while
	Started    int64         `json:"groups_started"`
	RSS        int64         `json:"rss_bytes"`
	Files      int64         `json:"descriptors"` // without those of present groups
	Open       int64         `json:"group_files"` // files of present groups that are open
	Threads    int64         `json:"threads"`
	Goroutines int64         `json:"goroutines"`
	Watches    int64         `json:"inotify_watches"`
	Entries    int64         `json:"map_entries"` // in hash maps of eBPF
	Journal    int64         `json:"journal_bytes"`
}

// holds is what a process holds in the kernel.
type holds struct {
	rss, threads, files, open, watches int64
	maps                               map[ebpf.MapID]bool
}

// holdsOf reads what the kernel says of a process, which works on the control groups below root.
func holdsOf(pid int, root string) (h holds, err error) {
	dir := fmt.Sprintf("/proc/%d", pid)
	err = fields(filepath.Join(dir, "status"), func(key, value string) {
		n, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64) // 0 for what is no number
		switch key {
		case "VmRSS":
			h.rss = n << 10
		case "Threads":
			h.threads = n
		}
	})
	if err != nil {
		return h, err
	}
	list, err := os.ReadDir(filepath.Join(dir, "fdinfo"))
	if err != nil {
		return h, err
	}
	present := map[string]bool{}
	h.maps = map[ebpf.MapID]bool{}
	for _, fd := range list {
		if file, is := presentFile(filepath.Join(dir, "fd", fd.Name()), root); is {
			present[file] = true
		}
		err := fields(filepath.Join(dir, "fdinfo", fd.Name()), func(key, value string) {
			switch {
			case strings.HasPrefix(key, "inotify wd"):
				h.watches++
			case key == "map_id":
				if id, err := strconv.ParseUint(value, 10, 32); err == nil {
					h.maps[ebpf.MapID(id)] = true
				}
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // closed meanwhile
			return h, err
		}
	}
	h.open = int64(len(present))
	h.files = int64(len(list)) - h.open
	return h, nil
}

// presentFile names the file of a control group that a descriptor is of. It is none of a group that was removed, even
// if there is another group of the same name now.
func presentFile(fd, root string) (name string, is bool) {
	name, err := os.Readlink(fd)
	if err != nil || !strings.HasPrefix(name, root+"/") {
		return "", false
	}
	open, err := os.Stat(fd)
	if err != nil {
		return "", false
	}
	there, err := os.Stat(name)
	return name, err == nil && os.SameFile(open, there)
}

// fields reads lines of the form "key: value".
func fields(file string, each func(key, value string)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok {
			each(key, strings.TrimSpace(value))
		}
	}
	return lines.Err()
}

// entries counts what is in the hash maps among these. A map that is gone meanwhile has none.
func entries(ids map[ebpf.MapID]bool) (n int64, err error) {
	for id := range ids {
		of, err := entriesOf(id)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, fmt.Errorf("count the entries of map %d: %w", id, err)
		}
		n += of
	}
	return n, nil
}

// tries bounds how often a count is begun anew because the entry at which it was is deleted: then the kernel begins
// at the first again.
const tries = 5

func entriesOf(id ebpf.MapID) (n int64, err error) {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	switch m.Type() {
	case ebpf.Hash, ebpf.LRUHash, ebpf.PerCPUHash, ebpf.LRUCPUHash:
	default:
		return 0, nil // its size is fixed
	}
	for range tries {
		if n, err = walk(m); !errors.Is(err, ebpf.ErrIterationAborted) {
			break
		}
	}
	return n, err
}

func walk(m *ebpf.Map) (n int64, err error) {
	seen := map[string]bool{}
	key, err := m.NextKeyBytes(nil)
	for ; err == nil && key != nil; key, err = m.NextKeyBytes(key) {
		if seen[string(key)] {
			return n, ebpf.ErrIterationAborted
		}
		seen[string(key)] = true
		n++
	}
	return n, err
}

// size is that of all files in a directory.
func size(dir string) (sum int64, err error) {
	list, err := os.ReadDir(dir)
	for _, e := range list {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // renamed meanwhile
			continue
		}
		if err != nil {
			return sum, err
		}
		if info.Mode().IsRegular() {
			sum += info.Size()
		}
	}
	return sum, err
}
