package kube

import (
	"cmp"
	"slices"

	"plimsoll/internal/config"
)

// Status is what a Discoverer says about itself.
type Status struct {
	Node      string
	Reachable bool
	Fault     string // why it is not reachable; "" when no request was answered yet
	Pods      int    // that the API server listed
	Matched   int    // that have groups
	Ready     bool   // everything was listed at least once: strategies are in force
	// Rejected are the fields of pods and ConfigMaps that cannot be taken as they stand now.
	Rejected      []*config.Rejected
	RejectedTotal int64 // since the start
}

// Status is the state of the connection to the API server.
func (d *Discoverer) Status() Status {
	state, fault := d.line.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Status{Node: d.Node, Reachable: state == whole, Pods: len(d.pods), Matched: d.known, Ready: d.ready(), Rejected: d.rejections(), RejectedTotal: d.rejected}
	if fault != nil {
		s.Fault = fault.Error()
	}
	return s
}

// rejections lists what is rejected now: of objects that are still there, and of their texts as they were read last.
func (d *Discoverer) rejections() []*config.Rejected {
	var list []*config.Rejected
	for _, bad := range d.badKeys {
		list = append(list, bad...)
	}
	for _, p := range d.pods {
		list = append(list, p.rejected...)
	}
	slices.SortStableFunc(list, func(a, b *config.Rejected) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Key, b.Key))
	})
	return list
}
