package workload

import "slices"

// Equal says whether the same limit is declared.
func (d *Declared) Equal(o *Declared) bool {
	if d == nil || o == nil {
		return d == o
	}
	return *d == *o
}

// Equal says whether it is the same container, and the same is known of it.
func (c Container) Equal(o Container) bool {
	if c.Declared.Equal(o.Declared) {
		o.Declared = c.Declared
	}
	return c == o
}

// Equal says whether it is the same pod, and the same is known of it and its containers.
func (p Pod) Equal(o Pod) bool {
	return p.ID == o.ID && p.Name == o.Name && p.Namespace == o.Namespace && p.Request == o.Request &&
		p.Own == o.Own && p.Delegated == o.Delegated &&
		p.Declared.Equal(o.Declared) && slices.EqualFunc(p.Containers, o.Containers, Container.Equal)
}

// Same says whether two snapshots are one, of which nothing was copied.
func Same(a, b []Pod) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
