package node

import (
	"log/slog"

	"plimsoll/internal/config"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/journal/leftover"
	"plimsoll/internal/plan"
)

// Restore puts back what the journal has, and with toSpec what differs from a declared limit.
func (n *Node) Restore(toSpec bool) ([]plan.Result, error) {
	results := n.Writer.Restore(nil, toSpec)
	if toSpec {
		repaired, err := n.repair()
		return append(results, repaired...), err
	}
	return results, nil
}

// repair writes the declared limit wherever the file holds another value.
func (n *Node) repair() ([]plan.Result, error) {
	found, err := cgroupfs.OfHost(n.Tree, "", &config.File{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	pods, err := found.Pods()
	if err != nil {
		return nil, err
	}
	var results []plan.Result
	for _, c := range leftover.Deviations(n.Tree, pods) {
		results = append(results, n.Writer.RestoreTo(c.Cgroup, c.Knob, c.To, c.Why))
	}
	return results, nil
}
