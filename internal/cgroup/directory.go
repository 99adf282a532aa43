package cgroup

// Inode is the identity of a group.
func (t *Tree) Inode(group string) (uint64, error) { return t.fs.Inode(t.Dir(group)) }

// Links is the identity of a group, and how many groups are in it; -1: not known without listing them.
func (t *Tree) Links(group string) (inode uint64, groups int, err error) {
	if counts, ok := t.fs.(interface {
		Links(name string) (uint64, int, error)
	}); ok {
		return counts.Links(t.Dir(group))
	}
	inode, err = t.Inode(group)
	return inode, -1, err
}

// Owner is the user whom a group belongs to: root where that is not known. Another one may make groups in it
// (Documentation/admin-guide/cgroup-v2.rst, Delegation).
func (t *Tree) Owner(group string) (uid uint32) {
	if owned, ok := t.fs.(interface {
		Owner(name string) (uint32, error)
	}); ok {
		uid, _ = owned.Owner(t.Dir(group)) // one that is gone has no groups in it
	}
	return uid
}
