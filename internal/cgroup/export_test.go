package cgroup

// NewDirOf makes a Dir that keeps at most limit files open.
func NewDirOf(root string, limit int) *Dir { return newDir(root, limit) }
