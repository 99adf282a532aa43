package cgroup

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// maxOpen caps the files that a Dir keeps open: 250 containers and their pods have about 2000 files that are read
// again and again.
const maxOpen = 4096

// Dir is the FS of the real files below a directory. The first read of a control group's file keeps the file open, and
// each later read is one pread(2): the kernel renders the content anew for each read from offset 0 (fs/seq_file.c,
// seq_read_iter). KeepOnly limits that to the groups that are read often, where most groups are read seldom. Several
// goroutines may use one Dir.
type Dir struct {
	root string

	mu   sync.RWMutex // read-locked while an open file is in use, so that no other goroutine closes it
	open openFiles
}

// NewDir makes an FS of the files below root, such as /sys/fs/cgroup. At most half of the descriptors that the
// process may have are kept open.
func NewDir(root string) *Dir {
	limit := maxOpen
	var rl unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &rl) == nil && rl.Cur/2 < uint64(limit) {
		limit = int(rl.Cur / 2)
	}
	return newDir(root, limit)
}

func newDir(root string, limit int) *Dir { return &Dir{root: root, open: newOpenFiles(limit)} }

// Root is the directory that the names are below.
func (d *Dir) Root() string { return d.root }

// ReadFile reads a whole file. The error of a file that is not there, or no longer, is fs.ErrNotExist.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	data, fd, err := d.readOpen(name)
	if err == nil {
		return data, nil
	}
	if fd >= 0 {
		// ENODEV: the group was removed. A new group of the same name may exist, so the name is opened once more.
		d.drop(name, fd)
	}
	full, err := d.resolve("open", name)
	if err != nil {
		return nil, err
	}
	return d.readNew(name, full)
}

// errNotOpen says that a name is not among the open files.
var errNotOpen = errors.New("not open")

// readOpen reads through the open file of that name; fd is -1 where there is none.
func (d *Dir) readOpen(name string) (data []byte, fd int, err error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	f, ok := d.open.find(name)
	if !ok {
		return nil, -1, errNotOpen
	}
	data, err = pread(f.fd)
	return data, f.fd, err
}

func (d *Dir) readNew(name, full string) ([]byte, error) {
	fd, err := retry(func() (int, error) { return unix.Open(full, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, pathError("open", full, err)
	}
	data, err := pread(fd)
	if err != nil || !d.keep(openFile{name: name, fd: fd}) {
		unix.Close(fd)
	}
	return data, pathError("read", full, err)
}

// keep adds a file to the open files, and says whether it did.
func (d *Dir) keep(f openFile) bool {
	d.mu.RLock()
	wants := d.open.wants(f)
	d.mu.RUnlock()
	if !wants || !reusable(f) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open.add(f)
}

// reusable says whether an open file can be read again. Only a file of a cgroup file system reports on read that it was
// removed. Lists of tasks are long and read seldom, and on v1 an open list keeps its old snapshot.
func reusable(f openFile) bool {
	switch path.Base(f.name) {
	case "tasks", "cgroup.procs", "cgroup.threads":
		return false
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(f.fd, &st); err != nil {
		return false
	}
	return int64(st.Type) == unix.CGROUP_SUPER_MAGIC || int64(st.Type) == unix.CGROUP2_SUPER_MAGIC
}

// drop closes an open file, unless another goroutine has put a newer one in its place.
func (d *Dir) drop(name string, fd int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f, ok := d.open.find(name); ok && f.fd == fd {
		d.open.close(name)
	}
}

// KeepOnly keeps files open only of the directories that KeepOpen names, and at most so many, within NewDir's bound.
func (d *Dir) KeepOnly(most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open.keepOnly(most)
}

// KeepOpen keeps the files of a directory open that each reading or each refill uses, from its next one on.
func (d *Dir) KeepOpen(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open.keep[path.Clean(dir)] = true
}

// CloseFiles closes the open files of a directory except the one that a refill writes: opening it would take longer
// than the write.
func (d *Dir) CloseFiles(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open.closeRead(path.Clean(dir))
}

// Forget closes the open files of a directory, not of those below it, and undoes KeepOpen.
func (d *Dir) Forget(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open.forget(path.Clean(dir))
}

// Close closes all open files. The Dir stays usable.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open.forgetAll()
	return nil
}

// WriteFile writes data in one write(2) to a file that exists.
func (d *Dir) WriteFile(name string, data []byte) error {
	full, err := d.resolve("write", name)
	if err != nil {
		return err
	}
	fd, err := d.writeOpen(name, data)
	if errors.Is(err, errNotOpen) || err == unix.ENODEV {
		d.drop(name, fd) // there may be a new group of the same name
		return d.writeNew(name, full, data)
	}
	return pathError("write", full, err)
}

// writeOpen writes through the open file of that name; the error is errNotOpen where there is none for writing. The
// kernel's files take a write at any offset as the whole value (kernel/cgroup/cgroup.c, cgroup_file_write).
func (d *Dir) writeOpen(name string, data []byte) (fd int, err error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	f, ok := d.open.find(name)
	if !ok || !f.writes {
		return -1, errNotOpen
	}
	n, err := retry(func() (int, error) { return unix.Pwrite(f.fd, data, 0) })
	return f.fd, short(n, data, err)
}

// writeNew opens the file for reading as well where it is to stay open: what is written is also compared before and
// read back.
func (d *Dir) writeNew(name, full string, data []byte) error {
	f := openFile{name: name, writes: true}
	d.mu.RLock()
	mode, wants := unix.O_WRONLY, d.open.wants(f)
	d.mu.RUnlock()
	if wants {
		mode = unix.O_RDWR
	}
	fd, err := retry(func() (int, error) { return unix.Open(full, mode|unix.O_CLOEXEC, 0) })
	if wants && err == unix.EACCES { // it cannot be read
		wants = false
		fd, err = retry(func() (int, error) { return unix.Open(full, unix.O_WRONLY|unix.O_CLOEXEC, 0) })
	}
	if err != nil {
		return pathError("open", full, err)
	}
	n, err := retry(func() (int, error) { return unix.Write(fd, data) })
	err = short(n, data, err)
	if f.fd = fd; !wants || err == unix.ENODEV || !d.keep(f) {
		unix.Close(fd)
	}
	return pathError("write", full, err)
}

func short(n int, data []byte, err error) error {
	if err == nil && n != len(data) {
		return io.ErrShortWrite
	}
	return err
}

// longestFile is above the length of every file name of a control group,
// of which cpuset.effective_cpus is among the longest.
const longestFile = 64

// tooDeep says of a directory that no path can name its files: who may make groups may nest them deeper than that, and
// is not to make the reading of all other groups fail.
func tooDeep(full string) bool { return len(full)+1+longestFile >= unix.PathMax }

// Dirs lists the directories in a directory, sorted. Symbolic links (cpu -> cpu,cpuacct) are not among them, nor are
// directories that are too deep.
func (d *Dir) Dirs(name string) ([]string, error) {
	full, err := d.resolve("readdir", name)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(full)
	if err != nil {
		return nil, pathError("readdir", full, err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !tooDeep(full+"/"+e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Inode is the inode number of a file or directory.
func (d *Dir) Inode(name string) (uint64, error) {
	full, err := d.resolve("stat", name)
	if err != nil {
		return 0, err
	}
	var st unix.Stat_t
	_, err = retry(func() (int, error) { return 0, unix.Stat(full, &st) })
	return st.Ino, pathError("stat", full, err)
}

// Links is the inode number of a directory, and how many directories are in it: each links back to it
// (fs/kernfs/inode.c, kernfs_refresh_inode). Some file systems do not count them: then it is -1.
func (d *Dir) Links(name string) (inode uint64, dirs int, err error) {
	full, err := d.resolve("stat", name)
	if err != nil {
		return 0, -1, err
	}
	if tooDeep(full) {
		return 0, -1, pathError("stat", full, unix.ENAMETOOLONG)
	}
	var st unix.Stat_t
	_, err = retry(func() (int, error) { return 0, unix.Stat(full, &st) })
	return st.Ino, int(st.Nlink) - 2, pathError("stat", full, err)
}

// Owner is the user whom a file or directory belongs to.
func (d *Dir) Owner(name string) (uid uint32, err error) {
	full, err := d.resolve("stat", name)
	if err != nil {
		return 0, err
	}
	var st unix.Stat_t
	_, err = retry(func() (int, error) { return 0, unix.Stat(full, &st) })
	return st.Uid, pathError("stat", full, err)
}

// Mkdir makes a group.
func (d *Dir) Mkdir(name string) error {
	full, err := d.resolve("mkdir", name)
	if err != nil {
		return err
	}
	return pathError("mkdir", full, unix.Mkdir(full, 0o755))
}

// Rmdir removes an empty group.
func (d *Dir) Rmdir(name string) error {
	full, err := d.resolve("rmdir", name)
	if err != nil {
		return err
	}
	d.Forget(name)
	return pathError("rmdir", full, unix.Rmdir(full))
}

// resolve refuses names that leave the root. Where the root itself is a v1 cpu hierarchy, cpuacct is beside it.
func (d *Dir) resolve(op, name string) (string, error) {
	inside, beside := strings.CutPrefix(name, "../cpuacct")
	if beside && (inside == "" || inside[0] == '/') {
		inside = "." + inside
	} else {
		inside = name
	}
	if !filepath.IsLocal(inside) {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return filepath.Join(d.root, name), nil
}

// pread reads a file from its start. All of the kernel's single-value and keyed files fit the first read.
func pread(fd int) ([]byte, error) {
	var buf [4096]byte
	n, err := retry(func() (int, error) { return unix.Pread(fd, buf[:], 0) })
	if err != nil {
		return nil, err
	}
	data := bytes.Clone(buf[:n])
	// A list of tasks comes in pieces of a page at most: a short read is not yet its end.
	for n > len(buf)/2 {
		n, err = retry(func() (int, error) { return unix.Pread(fd, buf[:], int64(len(data))) })
		if err != nil {
			return nil, err
		}
		data = append(data, buf[:n]...)
	}
	return data, nil
}

// retry repeats a system call that a signal has interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}

// pathError names the file. ENODEV, which a file of a removed group gives, becomes ENOENT: gone is gone.
func pathError(op, full string, err error) error {
	if err == nil {
		return nil
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if err == unix.ENODEV {
		err = unix.ENOENT
	}
	return &fs.PathError{Op: op, Path: full, Err: err}
}
