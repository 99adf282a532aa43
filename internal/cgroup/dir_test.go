package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestDirNames(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"cpu/cpu.shares", "cpuacct/cpuacct.usage", "cpuacct2/secret"} {
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, []byte("7\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	d := NewDir(filepath.Join(root, "cpu"))
	defer d.Close()
	for name, want := range map[string]error{
		"cpu.shares":                    nil,
		"./cpu.shares":                  nil,
		"../cpuacct/cpuacct.usage":      nil,
		"../cpuacct2/secret":            fs.ErrInvalid,
		"../cpuacct/../cpuacct2/secret": fs.ErrInvalid,
		"/etc/hostname":                 fs.ErrInvalid,
		"a/../../cpu/cpu.shares":        fs.ErrInvalid,
		"none":                          fs.ErrNotExist,
	} {
		data, err := d.ReadFile(name)
		if !errors.Is(err, want) || err == nil && string(data) != "7\n" {
			t.Errorf("ReadFile(%q) = %q, %v", name, data, err)
		}
		if err := d.WriteFile(name, []byte("7\n")); !errors.Is(err, want) {
			t.Errorf("WriteFile(%q) = %v", name, err)
		}
		if _, err := d.Inode(name); !errors.Is(err, want) {
			t.Errorf("Inode(%q) = %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "cpu/none")); err == nil {
		t.Error("WriteFile has made a file")
	}
	if uid, err := d.Owner("cpu.shares"); err != nil || int(uid) != os.Geteuid() {
		t.Errorf("Owner = %d, %v", uid, err)
	}
	if _, err := d.Owner("../cpuacct2"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("Owner leaves the root: %v", err)
	}
	if _, err := d.Dirs("../.."); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("Dirs leaves the root: %v", err)
	}
}

// TestGroupsNestedTooDeep: a tenant that nests groups until no path names their files stops no walk over all groups.
func TestGroupsNestedTooDeep(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "cgroup.controllers"), []byte("cpuset cpu\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(root, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(slices.Repeat([]string{strings.Repeat("deep", 25)}, 45), "leaf") {
		err := unix.Mkdirat(fd, name, 0o755)
		above := fd
		if err == nil {
			fd, err = unix.Openat(above, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		unix.Close(above)
		file, err2 := unix.Openat(fd, "cpuset.cpus", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		_, err3 := unix.Write(file, []byte("\n"))
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
		unix.Close(file)
	}
	unix.Close(fd)
	d := NewDir(root)
	defer d.Close()
	tree, err := Detect(d)
	if err != nil {
		t.Fatal(err)
	}
	sets, err := tree.CPUSets("/")
	if err != nil || len(sets) < 30 || len(sets) > 40 {
		t.Errorf("%d groups, %v", len(sets), err)
	}
	noRoom := strings.Repeat("/d", (unix.PathMax-len(root)-longestFile)/2)
	if _, _, err := tree.Links(noRoom); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("a group whose files no path can name: %v", err)
	}
	if _, _, err := tree.Links(strings.Repeat("/d", 100)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a group that is not there: %v", err)
	}
}

func TestDirPlainFiles(t *testing.T) {
	root := t.TempDir()
	d := NewDir(root)
	defer d.Close()
	for i, text := range []string{"1\n", "22\n", strings.Repeat("4194304\n", 4000)} {
		file := filepath.Join(root, "f")
		os.Remove(file)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		// Outside of a cgroup file system a removed file can still be read through an open descriptor, so no file may
		// be kept open.
		if got, err := d.ReadFile("f"); err != nil || string(got) != text {
			t.Errorf("reading %d: %d bytes, %v", i, len(got), err)
		}
	}
	if err := errors.Join(d.Mkdir("b"), d.Mkdir("a"), os.Symlink("a", filepath.Join(root, "link"))); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Dirs("."); err != nil || !cmp.Equal(got, []string{"a", "b"}) {
		t.Errorf("Dirs = %v, %v", got, err)
	}
	if err := d.WriteFile("f", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, _ := d.ReadFile("f"); len(got) != 32000 || got[0] != 'x' {
		t.Errorf("a write has cut the file to %d bytes", len(got))
	}
}

// A group may be removed between its file's opening and the write: the caller is to see that it is gone.
func TestPathErrorGone(t *testing.T) {
	if err := pathError("write", "f", syscall.ENODEV); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := pathError("write", "f", syscall.EINVAL); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
}
