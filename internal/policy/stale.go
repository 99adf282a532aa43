package policy

import (
	"fmt"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
)

// Repairing the limit of a pod that its owner has left as it was.
//
// Problem: a pod's new quota that is below its burst, or on v1 below the quota of a container of it, is refused by the
// kernel. The kubelet then reports the resize as done, for all containers have their new limits, and does not try again
// (pkg/kubelet/kuberuntime, doPodResizeAction): the pod's old limit stays for good.
//
// Approach: where a pod's declared limit is another one than what stands in its group, and what stands there is what was
// declared before, the owner has not written it. It may still do so for a while. Then the declared limit is written in its
// place; nothing of it is ours, and nothing is to be put back.
//
// Known limits: a limit that somebody else wrote is not repaired, but left alone (ownership.go). One that was stale before the
// agent came is reported as not the declared one, and `plimsoll restore --to-spec` repairs it.

// staleAfter is for how long an owner may take to write a pod's limit after it has declared it.
const staleAfter = 3 * time.Second

// stale lists what is to be repaired of a pod.
func (p *podCandidates) stale(in Input, out *Output) {
	if p.pod == nil {
		return
	}
	u := p.pod
	m, h := u.m, &u.m.quota
	if u.Declared == nil || h.ours || h.foreign || u.Paused {
		m.stale = time.Time{}
		return
	}
	declared := u.Declared.Bandwidth.Over(u.period())
	if declared == u.Disk.Quota || u.Disk.Quota != h.base || declared == cpu.Unlimited {
		m.stale = time.Time{}
		return
	}
	if m.stale.IsZero() {
		m.stale = in.Now
	}
	due := m.stale.Add(staleAfter)
	switch {
	case in.Now.Before(due):
		out.Looks[u.ID] = due
	case h.retry.Ready(in.Now):
		h.retry.hit(in.Now) // it may be refused
		why := fmt.Sprintf("its owner declared it %v ago and left the old one", in.Now.Sub(m.stale).Round(time.Second))
		out.Repairs = append(out.Repairs, plan.Change{Cgroup: u.ID, Knob: plan.Quota, From: plan.Time(u.Disk.Quota), To: plan.Time(declared), Why: why})
	}
}
