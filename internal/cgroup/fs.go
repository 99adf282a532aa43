// Package cgroup is the only package that knows how the kernel spells things in control groups: which hierarchies
// there are, what the files are called on v1 and v2, and what their values mean.
package cgroup

// FS is the seam between Plimsoll and the kernel: a tree of control-group files below one root. Names are relative
// and slash-separated ("cpu/lab/a/cpu.stat" on v1, "lab/a/cpu.stat" on v2). Dir is the real one, sim.Kernel a
// simulated one. Errors wrap the kernel's errno (fs.ErrNotExist, syscall.EINVAL, syscall.ENODEV ...).
type FS interface {
	ReadFile(name string) ([]byte, error)
	// WriteFile writes data in one write(2), as the kernel requires.
	WriteFile(name string, data []byte) error
	// Dirs lists the names of the directories in a directory, sorted.
	Dirs(name string) ([]string, error)
	// Inode is the inode number of a directory or file: the identity of a group.
	Inode(name string) (uint64, error)
}
