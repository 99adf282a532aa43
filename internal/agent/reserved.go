package agent

import (
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// reserveStatus is what the status says of CPUs of their own; nil where nobody asks for any and none stand.
func (a *Agent) reserveStatus() *report.Reserve {
	r := &a.reservations
	asked := r.asking && a.Reserving.Rules.Policy != strategy.ReserveNone
	if a.Reserving.Topology == nil || !asked && len(r.shares) == 0 {
		return nil
	}
	out := &report.Reserve{Policy: string(a.Reserving.Rules.Policy), All: a.Reserving.Rules.All, Shared: r.last.Shared.String(), CPUs: len(r.last.Shared),
		Floor: r.rules.Floor, Kept: r.rules.CPUs.String(), Unbound: r.unbound, Shield: r.shieldStatus(),
		Own: []report.OwnCPUs{}, Refused: []report.NoCPUs{}, Pinned: []report.BoundCPUs{}}
	for _, sh := range r.last.Shares {
		if _, has := r.shares[sh.Path]; has {
			out.Own = append(out.Own, report.OwnCPUs{Cgroup: sh.Path, Request: sh.Request, CPUs: sh.Own.String(), N: len(sh.Own),
				MayUse: sh.CPUs.String(), Packed: sh.Packed, Unlimited: sh.Unlimited, Partition: sh.Partition})
		}
	}
	for _, f := range r.last.Refused {
		out.Refused = append(out.Refused, report.NoCPUs{Cgroup: f.Name, Why: f.Why})
	}
	for _, p := range r.last.Pinned {
		out.Pinned = append(out.Pinned, report.BoundCPUs{Cgroup: p.Path, CPUs: p.CPUs.String()})
	}
	return out
}
