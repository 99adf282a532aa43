package observe

import "plimsoll/internal/workload"

// The files of a group that is read often stay open, because opening a file takes several times as long as reading it.
// Of an idle group, only the file whose write ended the last throttle stays open, so that the next refill need not open
// it. There are never more open files than groups.

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
		r.Tree.KeepOpen(g.Path)
	} else {
		r.Tree.CloseFiles(g.Path)
	}
}

// forgetFiles closes the files of a group that is gone.
func (r *Reader) forgetFiles(group string) {
	if !r.Borrowed {
		r.Tree.Forget(group)
	}
}
