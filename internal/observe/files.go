package observe

import "plimsoll/internal/workload"

// A group that is read often keeps its files open, since opening one takes several times as long as reading it. One that is idle
// has none open, but for the file whose write ended its last throttle: the next refill does not wait for the file to be opened.
// There are never more open files than groups.

// keepFew bounds the files that stay open.
func (r *Reader) keepFew(pods []workload.Pod) {
	if r.Borrowed {
		return
	}
	groups := 0
	for i := range pods {
		groups += pods[i].Groups()
	}
	r.Tree.KeepOnly(groups)
}

// KeepOpen keeps the files of a group open from now on, or no longer.
func (r *Reader) KeepOpen(g *Group, open bool) {
	if r.Borrowed || g.open == open {
		return
	}
	g.open = open
	if open {
		r.Tree.Hold(g.Path)
	} else {
		r.Tree.Release(g.Path)
	}
}

// forgetFiles closes the files of a group that is gone.
func (r *Reader) forgetFiles(group string) {
	if !r.Borrowed {
		r.Tree.Forget(group)
	}
}
