package main

import (
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/programs"
	"plimsoll/internal/probe/requests"
	"plimsoll/internal/report"
	"plimsoll/internal/responsetime"
)

// requestMeter measures how long the requests of some containers take.
type requestMeter struct {
	tree    *cgroup.Tree
	probe   *requests.Probe
	groups  map[string]*answering // by path
	adopted error                 // connections that were there are not followed; nil: they are
	full    bool                  // the table of groups is full
}

// answering is a container whose requests are measured.
type answering struct {
	inode uint64
	begun responsetime.Counts
	at    time.Time
}

// newRequestMeter loads the programs, and takes over the connections of the groups.
func newRequestMeter(tree *cgroup.Tree, groups []string) (*requestMeter, error) {
	p, err := requests.Open(requests.Options{Groups: max(512, 2*len(groups))})
	if err != nil {
		return nil, err
	}
	m := &requestMeter{tree: tree, probe: p, groups: map[string]*answering{}}
	m.follow(groups)
	if err := p.Start(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	m.adopted = p.Adopt(m.processes(groups)...)
	return m, nil
}

// processes is one of each group, in whose network namespace its connections are.
func (m *requestMeter) processes(groups []string) (list []int) {
	for _, group := range groups {
		if all, err := m.tree.Processes(group); err == nil && len(all) > 0 {
			list = append(list, all[0])
		}
	}
	return list
}

// follow lets go of groups that are gone, and follows the new ones.
func (m *requestMeter) follow(groups []string) {
	there := map[string]uint64{}
	for _, group := range groups {
		if inode, err := m.tree.Inode(group); err == nil {
			there[group] = inode
		}
	}
	for group, a := range m.groups {
		if there[group] != a.inode && m.probe.Forget(a.inode) == nil {
			delete(m.groups, group)
		}
	}
	m.full = false
	for group, inode := range there {
		if m.groups[group] != nil {
			continue
		}
		a := &answering{inode: inode, at: time.Now()}
		err := m.probe.Set(inode)
		if err == nil {
			a.begun, err = m.probe.Read(inode)
		}
		if err != nil {
			m.full = true
			continue
		}
		m.groups[group] = a
	}
}

// begin starts to count anew.
func (m *requestMeter) begin() error {
	if m == nil {
		return nil
	}
	for _, a := range m.groups {
		c, err := m.probe.Read(a.inode)
		if err != nil {
			return err
		}
		a.begun, a.at = c, time.Now()
	}
	return nil
}

// of is what was measured of a group; nil: it is not followed.
func (m *requestMeter) of(group string) (*report.Requests, error) {
	if m == nil || m.groups[group] == nil {
		return nil, nil
	}
	a := m.groups[group]
	c, err := m.probe.Read(a.inode)
	if err != nil {
		return nil, err
	}
	r := responsetime.Judge(c.Since(a.begun), time.Since(a.at))
	return &r, nil
}

// cost is what the programs have cost so far.
func (m *requestMeter) cost() ([]programs.Cost, error) {
	if m == nil {
		return nil, nil
	}
	return m.probe.Cost()
}

// notes say what is not known of requests.
func (m *requestMeter) notes() (list []string) {
	if m == nil {
		return nil
	}
	if err := m.probe.Clockless(); err != nil {
		list = append(list, "the throttled part of requests is not known: "+explained(err))
	}
	if m.adopted != nil {
		list = append(list, fmt.Sprintf("requests on older connections are missing: %v", m.adopted))
	}
	if n := m.probe.Unseen(); n > 0 {
		list = append(list, fmt.Sprintf("the requests of %d connections are missing: the kernel had no memory to follow them", n))
	}
	if m.full {
		list = append(list, "the requests of some containers are not measured: the table of groups is full")
	}
	return list
}

func (m *requestMeter) close() error {
	if m == nil {
		return nil
	}
	return m.probe.Close()
}

// requestsHint says what can be done where requests cannot be measured.
func requestsHint(err error) string {
	if errors.Is(err, requests.ErrTracepoint) {
		return "request times take Linux " + sinceRequests + " or later; `plimsoll doctor` says what this kernel can do"
	}
	return probe.Explain(err)
}

// sinceRequests is the oldest kernel on which request times are tested. The tracepoints are older (6.3).
const sinceRequests = "6.12"

// groupsOf are the paths of containers.
func groupsOf(list []report.Container) (groups []string) {
	for _, c := range list {
		groups = append(groups, c.Cgroup)
	}
	return groups
}
