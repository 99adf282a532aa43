package kube

import (
	"cmp"
	"slices"

	"plimsoll/internal/config"
)

// Status is what a Discoverer says about itself.
type Status struct {
	Node       string
	Reachable  bool
	Fault      string // why it is not reachable; "" when no request was answered yet
	Pods       int    // that the API server listed
	Matched    int    // that have groups
	Ready      bool   // everything was listed at least once: strategies are in force
	NoNode     bool   // the API server has no node of this name
	ConfigMaps []ConfigMapRead
	// Rejected are the fields of pods and ConfigMaps with invalid values now: the first of RejectedNow.
	Rejected      []*config.Rejected
	RejectedNow   int
	RejectedTotal int64 // since the start
	// Cuts is what pods ask for in vain, because of bounds that are not their own: the first of CutsNow.
	Cuts          []config.Cut
	CutsNow       int
	EventsDropped int64 // since the start: Events that were not made, because there were too many
}

// ConfigMapRead is one of the named ConfigMaps, and whether there is one of that name.
type ConfigMapRead struct {
	ConfigMap
	There bool
}

// Status is the state of the connection to the API server.
func (d *Discoverer) Status() Status {
	state, fault := d.line.now()
	s := Status{Node: d.Node, Reachable: state == whole, EventsDropped: d.events.droppedTotal()}
	d.mu.Lock()
	for _, n := range d.Names {
		s.ConfigMaps = append(s.ConfigMaps, ConfigMapRead{n, d.maps[n] != nil})
	}
	s.Pods, s.Matched, s.Ready = len(d.pods), d.matched, d.ready()
	s.NoNode = s.Ready && !d.found
	s.RejectedTotal, s.Rejected = d.rejected, d.rejections()
	cuts := d.cuts // never written to
	d.mu.Unlock()
	s.RejectedNow, s.Rejected = len(s.Rejected), first(s.Rejected)
	s.CutsNow, s.Cuts = len(cuts), cuts[:min(len(cuts), mostListed)]
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
	return list
}

// mostListed bounds the lists: whoever may write pods chooses how long they are.
const mostListed = 200

// first are the first of a list, those of ConfigMaps before those of pods.
func first(list []*config.Rejected) []*config.Rejected {
	slices.SortStableFunc(list, func(a, b *config.Rejected) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Key, b.Key))
	})
	return slices.Clone(list[:min(len(list), mostListed)])
}
