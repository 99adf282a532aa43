// Package cluster is what an agent has of Kubernetes: it joins the containers that are found with their pods, passes
// the node's strategy to the agent, and adds to its status. A nil *Cluster is a node without Kubernetes.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"plimsoll/internal/agent"
	"plimsoll/internal/config"
	"plimsoll/internal/discover/kube"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// Cluster is the knowledge of Kubernetes.
type Cluster struct {
	*kube.Discoverer
	changed atomic.Pointer[func(strategy.Node)] // nil while there is no agent
	fault   atomic.Pointer[error]               // of plimsoll's own file
}

// New makes it from options, of which it sets Changed.
func New(o kube.Options) *Cluster {
	c := &Cluster{}
	o.Changed = c.tell
	c.Discoverer = kube.New(o)
	return c
}

func (c *Cluster) tell(s strategy.Node) {
	if changed := c.changed.Load(); changed != nil {
		(*changed)(s)
	}
}

// Over returns the discoverer of containers: the groups that were found, joined with Kubernetes.
func (c *Cluster) Over(found agent.Discoverer) agent.Discoverer {
	if c == nil {
		return found
	}
	return c.Discoverer
}

// Serve passes the node's strategy to the agent, and reports of other writers to Kubernetes.
func (c *Cluster) Serve(a *agent.Agent) {
	if c == nil {
		return
	}
	changed := func(s strategy.Node) {
		a.Configure(s, nil)
		if err := c.fault.Load(); err != nil && *err != nil {
			a.Configure(s, *err) // the file is as bad as it was
		}
	}
	c.changed.Store(&changed)
	c.Announce()
	a.Foreign, a.Bounded = c.Foreign, c.Bounded
}

// Ready says why the configuration of each pod is not known yet.
func (c *Cluster) Ready() error {
	if c == nil || c.Status().Ready {
		return nil
	}
	return errors.New("the API server has not listed all pods yet")
}

// Run follows the API server until the context ends.
func (c *Cluster) Run(ctx context.Context) error {
	if c == nil {
		return nil
	}
	return c.Discoverer.Run(ctx)
}

// Note keeps what is wrong with plimsoll's own file.
func (c *Cluster) Note(err error) {
	if c != nil {
		c.fault.Store(&err)
	}
}

// Configure passes what the node gets of a new file to the agent, in the order of the changes from Kubernetes. It does
// so where the strategy stays the same too: the agent may have the error of the last file.
func (c *Cluster) Configure(a *agent.Agent, file *config.File) {
	if c == nil {
		a.Configure(file.Node(), nil)
		return
	}
	c.Discoverer.Configure(file.Node(), file.Tenants())
	c.Announce()
}

// Health adds to a status whether the cluster is ready.
func (c *Cluster) Health(s *report.Status) {
	if c != nil {
		k := c.Status()
		s.Kubernetes = &report.Kubernetes{Ready: k.Ready, Fault: k.Fault}
	}
}

// Report adds to a status what is known of Kubernetes.
func (c *Cluster) Report(s *report.Status) {
	if c == nil {
		return
	}
	k := c.Status()
	s.Kubernetes = &report.Kubernetes{Node: k.Node, Reachable: k.Reachable, Fault: k.Fault, Ready: k.Ready,
		Pods:    k.Pods,
		Matched: k.Matched, RejectedNow: k.RejectedNow, RejectedTotal: k.RejectedTotal, EventsDropped: k.EventsDropped}
	for _, m := range k.ConfigMaps {
		s.Kubernetes.ConfigMaps = append(s.Kubernetes.ConfigMaps, report.ConfigMap{Name: m.String(), There: m.There})
	}
	for _, r := range k.Rejected {
		s.Kubernetes.Rejected = append(s.Kubernetes.Rejected,
			report.Rejected{Object: r.Object, Key: r.Key, Field: r.Field, Fault: r.Msg, Hint: r.Hint})
	}
	cuts := make([]report.Cut, 0, len(k.Cuts))
	for _, c := range k.Cuts {
		cuts = append(cuts, report.Cut(c))
	}
	s.AddCuts(cuts, k.CutsNow)
	s.Problems = append(s.Problems, s.Kubernetes.Problems()...)
	if k.Fault != "" {
		s.Problems = append(s.Problems, fmt.Sprintf(report.ProblemKubernetes, k.Fault))
	}
	if k.NoNode {
		s.Problems = append(s.Problems, fmt.Sprintf(report.ProblemNoNode, k.Node))
	}
}
