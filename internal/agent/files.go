package agent

import "plimsoll/internal/workload"

// A group that is looked at often keeps its files open, since opening one takes several times as long as reading it. One
// that is idle has none open, but for the file whose write ended its last throttle: the next refill does not wait for the
// file to be opened. There are never more open files than groups.

// keepFew bounds the files that stay open.
func (a *Agent) keepFew(pods []workload.Pod) {
	if a.DryRun { // another agent's files
		return
	}
	groups := 0
	for i := range pods {
		groups += len(pods[i].Containers)
		if pods[i].Path != "" {
			groups++
		}
	}
	a.Tree.KeepOnly(groups)
}

// holdFiles keeps the files of a group open from now on, or no longer.
func (a *Agent) holdFiles(g *group, often bool) {
	if a.DryRun || g.held == often {
		return
	}
	g.held = often
	if often {
		a.Tree.Hold(g.Path)
	} else {
		a.Tree.Release(g.Path)
	}
}

// forgetFiles closes the files of a group that is gone.
func (a *Agent) forgetFiles(group string) {
	if !a.DryRun {
		a.Tree.Forget(group)
	}
}
