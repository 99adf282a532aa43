package lock

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process is one that has locked something.
type Process struct {
	PID     int    // 0: not known, as of one in another PID namespace
	User    int    // the real one, which no program with the setuid bit changes
	Command string // as the kernel names it (proc_pid_comm(5))
}

func (p Process) String() string {
	if p.PID == 0 {
		return "a process that cannot be seen from here"
	}
	return fmt.Sprintf("process %d of user %d (%q)", p.PID, p.User, p.Command)
}

// processOf looks a process up.
func processOf(pid int) Process {
	p := Process{PID: pid}
	if pid == 0 {
		return p
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch fields := strings.Fields(value); {
		case name == "Name":
			p.Command = strings.TrimSpace(value)
		case name == "Uid" && len(fields) > 0:
			p.User, _ = strconv.Atoi(fields[0])
		}
	}
	return p
}

// Self is this process: its number, and when it started.
func Self() (pid int, start uint64) { return os.Getpid(), startOf("self") }

// started is when a process started, in clock ticks since boot; 0 for one that does not live.
func started(pid int) uint64 { return startOf(strconv.Itoa(pid)) }

// startOf is the same for a name in /proc. This process is "self", for /proc may be that of another PID namespace.
func startOf(name string) uint64 {
	stat, err := os.ReadFile(filepath.Join("/proc", name, "stat"))
	if err != nil {
		return 0
	}
	return parseStart(stat)
}

// parseStart reads field 22 of /proc/PID/stat. The second field, the name in parentheses, may have blanks and
// parentheses in it (proc_pid_stat(5)).
func parseStart(stat []byte) uint64 {
	rest := stat[bytes.LastIndexByte(stat, ')')+1:]
	fields := bytes.Fields(rest)
	if len(fields) < 20 {
		return 0
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return 0
	}
	return start
}

// identity is the device and inode of a file, as /proc/locks spells them; "" without one.
func identity(name string) string {
	var st unix.Stat_t
	if unix.Stat(name, &st) != nil {
		return ""
	}
	return spell(&st)
}

func identityOf(f *os.File) string {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return ""
	}
	return spell(&st)
}

func spell(st *unix.Stat_t) string {
	return fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
}

// flocker is the process that has a flock on a file; 0: none, or one in another PID namespace.
func flocker(f *os.File) int {
	for _, l := range locksOn(identityOf(f)) {
		if l.kind == "FLOCK" && l.pid > 0 {
			return l.pid
		}
	}
	return 0
}

// lockers are the processes with a lock (fcntl) on a file.
func lockers(name string) []Process {
	file := identity(name)
	var list []Process
	for _, l := range locksOn(file) {
		if l.kind == "POSIX" && l.pid > 0 {
			list = append(list, processOf(l.pid))
		}
	}
	for _, pid := range openLockers(file) {
		list = append(list, processOf(pid))
	}
	if len(list) == 0 {
		list = []Process{{}}
	}
	return list
}

// locksOn reads who has locked a file.
func locksOn(file string) []fileLock {
	data, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	return parseLocks(data, file)
}

// fileLock is one line of /proc/locks.
type fileLock struct {
	kind string
	pid  int // -1: an open file description has it
}

// parseLocks finds the locks on a file in /proc/locks (fs/locks.c, lock_get_status): "1: FLOCK  ADVISORY  WRITE 1234
// 00:1b:42 0 EOF". A waiting one has "->" for its second word. A flock of a process in another PID namespace, other
// than a child of the reader's, is not listed; a lock of an open file description always is.
func parseLocks(data []byte, file string) []fileLock {
	var list []fileLock
	for line := range bytes.Lines(data) {
		f := strings.Fields(string(line))
		if len(f) < 6 || f[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil {
			list = append(list, fileLock{f[1], pid})
		}
	}
	return list
}

// openLockers finds the processes that have a file open with a lock of the open file description, as far as this
// process may look at others' open files. It reads all of these, and is for the rare case that such a lock is in the
// way.
func openLockers(file string) []int {
	var list []int
	infos, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*")
	for _, info := range infos {
		text, err := os.ReadFile(info)
		if err != nil || !bytes.Contains(text, []byte("OFDLCK")) || !bytes.Contains(text, []byte(" "+file+" ")) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(info, "/")[2]); err == nil && !slices.Contains(list, pid) {
			list = append(list, pid)
		}
	}
	return list
}
