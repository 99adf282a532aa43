package report

import (
	"fmt"
	"io"
)

// ClusterSchema names the format of `kubectl plimsoll ... --json`.
const ClusterSchema = "plimsoll.cluster/v1"

// Page can be written for people.
type Page interface{ Text(w io.Writer) error }

// Cluster is what the agents of a cluster say.
type Cluster[T Page] struct {
	Schema string      `json:"schema"`
	Nodes  []Answer[T] `json:"nodes"` // a node each
}

// Answer is what the agent of one node says, or why it does not.
type Answer[T Page] struct {
	Node  string `json:"node"`            // its name
	Pod   string `json:"pod"`             // the agent's pod
	Error string `json:"error,omitempty"` // why there is no answer
	// the JSON of the command on that node: of status, report, diagnose or plan; `null` with an error
	Answer *T `json:"answer"`
}

// NewCluster wraps answers for output.
func NewCluster[T Page](nodes []Answer[T]) Cluster[T] {
	if nodes == nil {
		nodes = []Answer[T]{}
	}
	return Cluster[T]{ClusterSchema, nodes}
}

// Silent are the nodes without an answer, each with the reason.
func (c Cluster[T]) Silent() (list []string) {
	for _, a := range c.Nodes {
		if a.Answer == nil {
			list = append(list, a.Node+": no answer: "+a.Error)
		}
	}
	return list
}

// Having leaves of the nodes that answered those that have something of a name, and of their status only that. It is an
// error where none has; the list is of the nodes without an answer then.
func Having(nodes []Answer[Status], name string) (list []Answer[Status], err error) {
	found := false
	for _, a := range nodes {
		if a.Answer != nil {
			s, unknown := a.Answer.Named(name)
			if unknown != nil {
				err = unknown
				continue
			}
			a.Answer, found = &s, true
		}
		list = append(list, a)
	}
	if found {
		err = nil
	}
	return list, err
}

// Text writes one table of all nodes where the answers are tables of containers, else the nodes one after the other,
// each under its name.
func (c Cluster[T]) Text(w io.Writer) error {
	var p page
	switch nodes := any(c.Nodes).(type) {
	case []Answer[Status]:
		statusOfAll(&p, nodes)
	case []Answer[Report]:
		reportOfAll(&p, nodes)
	default:
		return c.oneByOne(w)
	}
	for _, a := range c.Nodes {
		if a.Answer == nil {
			p.printf("node %s (pod %s): no answer: %s\n", a.Node, a.Pod, a.Error)
		}
	}
	return p.writeTo(w)
}

// statusOfAll is a table of all containers, and what is to be said of each node.
func statusOfAll(p *page, nodes []Answer[Status]) {
	rows := []line{{cells: append([]string{"NODE"}, statusHead()...)}}
	for _, a := range nodes {
		if a.Answer != nil {
			for _, r := range a.Answer.Sorted(ByName).rows() {
				rows = append(rows, line{cells: append([]string{a.Node}, r.cells...), notes: r.notes})
			}
		}
	}
	if len(rows) > 1 {
		p.lines(rows)
		p.printf(statusLegend)
		p.printf("\n")
	}
	for _, a := range nodes {
		s := a.Answer
		if s == nil {
			continue
		}
		p.printf("node %s: %s, %s; %.2f of %.2f CPUs used, %s; %s\n", a.Node, s.Mode, s.Node.words(), s.Node.Used,
			s.Node.Capacity, several(len(folded(s.Containers)), "container"), s.Events.line())
		if s.Mode == Held {
			p.printf("  held%s\n", s.heldLine())
		}
		for _, problem := range s.Problems {
			p.printf("  problem: %s\n", problem)
		}
	}
}

func reportOfAll(p *page, nodes []Answer[Report]) {
	use, did := [][]string{append([]string{"NODE"}, useHead()...)}, [][]string{append([]string{"NODE"}, didHead()...)}
	for _, a := range nodes {
		if a.Answer == nil {
			continue
		}
		used, done := a.Answer.rows()
		for i := range used {
			use, did = append(use, append([]string{a.Node}, used[i]...)), append(did,
				append([]string{a.Node}, done[i]...))
		}
	}
	if len(use) == 1 {
		p.printf("no containers\n")
		return
	}
	reportTables(p, use, did)
}

func (c Cluster[T]) oneByOne(w io.Writer) error {
	for i, a := range c.Nodes {
		gap := "\n"
		if i == 0 {
			gap = ""
		}
		if _, err := fmt.Fprintf(w, "%s== %s (pod %s)\n", gap, Printable(a.Node), Printable(a.Pod)); err != nil {
			return err
		}
		if a.Answer == nil {
			if _, err := fmt.Fprintf(w, "no answer: %s\n", Printable(a.Error)); err != nil {
				return err
			}
			continue
		}
		if err := (*a.Answer).Text(w); err != nil {
			return err
		}
	}
	return nil
}
