package kube

// Status is what a Discoverer says about itself.
type Status struct {
	Node      string
	Reachable bool
	Fault     string // why it is not; "" when nothing was asked yet
	Pods      int    // that the API server told of
	Matched   int    // of which there are groups
	Ready     bool   // everything was told at least once: strategies are in force
	Rejected  int64  // fields that could not be taken, since the start
}

// Status tells how it stands with the API server.
func (d *Discoverer) Status() Status {
	state, fault := d.line.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Status{Node: d.Node, Reachable: state == whole, Pods: len(d.pods), Matched: d.known, Ready: d.ready(), Rejected: d.rejected}
	if fault != nil {
		s.Fault = fault.Error()
	}
	return s
}
