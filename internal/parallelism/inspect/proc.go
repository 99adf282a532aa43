package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/cpu"
)

// userHZ is the unit of times in /proc/PID/stat (USER_HZ), the same on every architecture that Go runs on.
const userHZ = 100

// mostTicks are 87 CPU years, of which two fit into a time.Duration.
const mostTicks = 1 << 38

// stat is a line of /proc/PID/stat.
type stat struct {
	name    string
	ended   bool
	used    time.Duration
	threads int
}

// file is the path of a file of a process.
func (r Reader) file(pid int, name string) string {
	return filepath.Join(r.proc, strconv.Itoa(pid), name)
}

// link is the text of a link; "" where it cannot be read.
func (r Reader) link(pid int, name string) string {
	text, err := os.Readlink(r.file(pid, name))
	if err != nil {
		return ""
	}
	return text
}

// read reads up to so many bytes, and says whether that was all.
func (r Reader) read(pid int, name string, most int64) (data []byte, whole bool) {
	f, err := os.Open(r.file(pid, name))
	if err != nil {
		return nil, false
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, most+1))
	if int64(len(data)) > most {
		return data[:most], false
	}
	return data, err == nil
}

func (r Reader) stat(pid int) (stat, error) {
	data, whole := r.read(pid, "stat", mostText)
	if !whole {
		return stat{}, errors.New("it has ended")
	}
	return parseStat(data)
}

// parseStat reads proc_pid_stat(5). The name is between the first and the last parenthesis, whatever it contains.
func parseStat(data []byte) (stat, error) {
	first, last := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if first < 0 || last < first {
		return stat{}, errors.New("no name in parentheses")
	}
	fields := strings.Fields(string(data[last+1:]))    // from the third, the state, on
	const state, utime, stime, threads = 0, 11, 12, 17 // 3, 14, 15 and 20 in the manual
	if len(fields) <= threads {
		return stat{}, fmt.Errorf("%d fields", len(fields))
	}
	s := stat{name: string(data[first+1 : last]), ended: strings.ContainsAny(fields[state], "ZX")}
	for _, at := range []int{utime, stime} {
		ticks, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil || ticks < 0 {
			return stat{}, fmt.Errorf("no time: %q", fields[at])
		}
		s.used += time.Duration(min(ticks, mostTicks)) * (time.Second / userHZ)
	}
	n, err := strconv.ParseUint(fields[threads], 10, 31)
	s.threads = int(n)
	return s, err
}

// cpus is how many CPUs the process may run on; 0: not known. It is the main thread's affinity, as a runtime that
// starts sees it.
func (r Reader) cpus(pid int) int {
	data, _ := r.read(pid, "status", mostText)
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			set, err := cpu.ParseSet(strings.TrimSpace(text))
			if err != nil {
				return 0
			}
			return len(set)
		}
	}
	return 0
}

// workers counts the threads of Node's that run JavaScript beside the main one; -1: not known. Each has an event loop,
// and so an epoll instance (libuv's uv_loop_init): Node itself has three, for the main thread, delayed tasks and
// tracing. Since Node 24 the threads have a name, too, unless a worker was given another one (src/node_worker.cc).
func (r Reader) workers(pid int) int {
	files, whole := r.names(pid, "fd", mostFiles)
	if !whole {
		return -1
	}
	loops, named := 0, 0
	for _, fd := range files {
		if r.link(pid, filepath.Join("fd", fd)) == "anon_inode:[eventpoll]" {
			loops++
		}
	}
	threads, _ := r.names(pid, "task", mostThreads)
	for _, tid := range threads {
		data, _ := r.read(pid, filepath.Join("task", tid, "comm"), mostText)
		if strings.TrimSpace(string(data)) == "WorkerThread" {
			named++
		}
	}
	return max(0, loops-loopsOfNode, named)
}

const loopsOfNode = 3

// names are those in a directory of a process, up to so many, and whether these are all.
func (r Reader) names(pid int, name string, most int) (list []string, whole bool) {
	dir, err := os.Open(r.file(pid, name))
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	list, err = dir.Readdirnames(most)
	if err == nil {
		_, err = dir.Readdirnames(1)
	}
	return list, err == io.EOF
}
