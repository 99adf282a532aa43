package top

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/report"
	"plimsoll/internal/view"
)

// Merge makes one view of those of several nodes, and says of each row by its ID on which node it is. An ID is the
// node's name before the path: the same path is on many nodes.
func Merge(views []view.View) (view.View, map[string]string) {
	nodes := map[string]string{}
	all := view.View{Schema: view.Schema, Mode: report.Active, Rows: []view.Row{},
		Node: fmt.Sprintf("%d nodes", len(views)), Mark: view.Mark{Node: report.Node{State: "idle"}}}
	worst, worse := -1, []string{"idle", "unknown", "cooling", "overload"}
	for i, v := range views {
		for _, r := range v.Rows {
			r.ID = v.Node + ":" + r.ID
			nodes[r.ID] = v.Node
			all.Rows = append(all.Rows, r)
		}
		n, m := &all.Mark.Node, v.Mark.Node
		n.CPUs, n.Capacity, n.Used, n.Threshold, n.Granted =
			n.CPUs+m.CPUs, n.Capacity+m.Capacity, n.Used+m.Used, n.Threshold+m.Threshold, n.Granted+m.Granted
		if slices.Index(worse, m.State) > slices.Index(worse, n.State) {
			n.State = m.State
		}
		all.Mark.Changed += v.Mark.Changed
		for _, p := range v.Problems {
			all.Problems = append(all.Problems, v.Node+": "+p)
		}
		if v.Mode == report.Held {
			all.Problems = append(all.Problems, fmt.Sprintf(report.ProblemNodeHeld, v.Node))
		}
		if v.Now.After(all.Now) {
			all.Now = v.Now
		}
		all.Window = max(all.Window, v.Window)
		if len(v.Rows) > 0 && (worst < 0 || lostOf(v.Rows[0]) > lostOf(views[worst].Rows[0])) {
			worst = i
		}
	}
	all.Sentence = "No container is managed on any node."
	if worst >= 0 {
		all.Sentence = views[worst].Sentence
		if lostOf(views[worst].Rows[0]) > 0 {
			all.Sentence = views[worst].Node + ": " + all.Sentence
		}
	}
	return all, nodes
}

func lostOf(r view.Row) time.Duration {
	if r.Lost == nil {
		return -1
	}
	return *r.Lost
}
