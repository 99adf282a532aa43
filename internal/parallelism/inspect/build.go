package inspect

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/parallelism"
)

// errBudget ends the reading of an executable.
var errBudget = errors.New("it takes too many bytes")

// build says how a Go program was built; false: it is none, or that could not be read.
func (r Reader) build(pid int) (parallelism.Build, bool) {
	f, err := r.openProgram(pid)
	if err != nil {
		return parallelism.Build{}, false
	}
	defer f.Close()
	b, err := readBuild(&budget{file: f, left: mostBinary})
	return b, err == nil
}

// openProgram opens the executable of a process, if it is a regular file on a file system of this machine.
func (r Reader) openProgram(pid int) (*os.File, error) {
	fd, err := unix.Open(r.file(pid, "exe"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	kind, err := r.fileSystem(pid, fd)
	if err != nil {
		return nil, err
	}
	if elsewhere(kind) {
		return nil, fmt.Errorf("it is on %s", kind)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("it is no regular file")
	}
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// fileSystem is the type of the file system that an open file is on. The kernel's lists are asked, and not the file
// system itself. A mount that is not among those of the process is an error.
func (r Reader) fileSystem(pid, fd int) (string, error) {
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return "", err
	}
	id := ""
	for line := range strings.Lines(string(info)) {
		if text, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			id = strings.TrimSpace(text)
		}
	}
	mounts, _ := r.read(pid, "mountinfo", mostText)
	return typeOfMount(mounts, id)
}

// typeOfMount reads proc_pid_mountinfo(5): the first field is the mount's number, and the type follows a field that is
// "-". No field has a space in it, for these are escaped.
func typeOfMount(mounts []byte, id string) (string, error) {
	if _, err := strconv.Atoi(id); err != nil {
		return "", fmt.Errorf("%q is no mount", id)
	}
	for line := range bytes.Lines(mounts) {
		fields := strings.Fields(string(line))
		if len(fields) == 0 || fields[0] != id {
			continue
		}
		for i := 6; i+1 < len(fields); i++ {
			if fields[i] == "-" {
				return fields[i+1], nil
			}
		}
	}
	return "", fmt.Errorf("mount %s is not among those of the process", id)
}

// elsewhere says whether a file system is served by a process or by another machine, which may never answer.
func elsewhere(kind string) bool {
	name, _, _ := strings.Cut(kind, ".")
	switch name {
	case "fuse", "fuseblk", "virtiofs", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "lustre", "gpfs",
		"glusterfs", "ocfs2", "coda":
		return true
	}
	return false
}

// budget is an executable that ends with an error once so many bytes were read.
type budget struct {
	file io.ReaderAt
	left int
}

func (b *budget) ReadAt(to []byte, at int64) (int, error) {
	if len(to) > b.left {
		return 0, errBudget
	}
	b.left -= len(to)
	return b.file.ReadAt(to, at)
}

// readBuild reads the build's description. A panic on hostile input is an error.
func readBuild(file io.ReaderAt) (b parallelism.Build, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be read: %v", p)
		}
	}()
	var magic [4]byte
	if _, err := file.ReadAt(magic[:], 0); err != nil || string(magic[:]) != elf.ELFMAG {
		return b, errors.New("it is no ELF file")
	}
	info, err := buildinfo.Read(file)
	if err != nil {
		return b, err
	}
	b.Version = info.GoVersion
	for _, s := range info.Settings {
		b.Settings = true
		if s.Key == "DefaultGODEBUG" {
			b.GODEBUG = s.Value
		}
	}
	for _, m := range info.Deps {
		b.AutoMaxProcs = b.AutoMaxProcs || m.Path == "go.uber.org/automaxprocs"
	}
	return b, nil
}
