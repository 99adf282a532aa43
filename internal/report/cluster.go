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
	Nodes  []Answer[T] `json:"nodes"`
}

// Answer is what the agent of one node says, or why it does not.
type Answer[T Page] struct {
	Node   string `json:"node"`
	Pod    string `json:"pod"`
	Error  string `json:"error,omitempty"`
	Answer *T     `json:"answer"` // null with an error
}

// NewCluster wraps answers for output.
func NewCluster[T Page](nodes []Answer[T]) Cluster[T] {
	if nodes == nil {
		nodes = []Answer[T]{}
	}
	return Cluster[T]{ClusterSchema, nodes}
}

// Silent counts the nodes without an answer.
func (c Cluster[T]) Silent() int {
	n := 0
	for _, a := range c.Nodes {
		if a.Answer == nil {
			n++
		}
	}
	return n
}

// Text writes the nodes one after the other, each under its name.
func (c Cluster[T]) Text(w io.Writer) error {
	for i, a := range c.Nodes {
		gap := "\n"
		if i == 0 {
			gap = ""
		}
		if _, err := fmt.Fprintf(w, "%s== %s (pod %s)\n", gap, printable(a.Node), printable(a.Pod)); err != nil {
			return err
		}
		if a.Answer == nil {
			if _, err := fmt.Fprintf(w, "no answer: %s\n", printable(a.Error)); err != nil {
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
