package report

import (
	"fmt"
	"slices"
	"strings"
)

// Reserve is how the node's CPUs are divided among the containers that request exclusive CPUs.
type Reserve struct {
	Policy string `json:"policy"` // how CPUs are divided
	// all containers with a request or limit get exclusive CPUs (`reserve.exclusive`), and not only those with the
	// annotation
	All       bool            `json:"all,omitempty"`
	Shared    string          `json:"shared"`          // the share pool: the CPUs of everybody else
	CPUs      int             `json:"shared_cpus"`     // how many CPUs the share pool has
	MinShared float64         `json:"min_shared_cpus"` // the least that the share pool keeps
	Kept      string          `json:"reserved"`        // CPUs that are never given away
	Exclusive []ExclusiveCPUs `json:"exclusive"`       // containers that have exclusive CPUs
	Refused   []NoCPUs        `json:"refused"`         // containers that ask for exclusive CPUs and have none
	Pinned    []BoundCPUs     `json:"pinned"`          // groups that another program has bound to CPUs: left alone
	// files that hold a value of Plimsoll for this: of these containers, and of all groups that are kept off their CPUs
	Changed int `json:"changed_files"`
	// processes and kernel threads in groups that no cpuset can bind
	Unbound int `json:"unbound"`
	// the group in which the tasks of the cpuset root are kept; only on cgroup v1
	Shield *Shield `json:"shield,omitempty"`
}

// Shield is the group in which the tasks of the cpuset root are kept (v1).
type Shield struct {
	Cgroup string `json:"cgroup"` // the path of the group
	Tasks  int    `json:"tasks"`  // how many tasks of the root are in it
}

// ExclusiveCPUs is a container with exclusive CPUs.
type ExclusiveCPUs struct {
	Cgroup  string  `json:"cgroup"`       // the path of the group
	Request float64 `json:"request_cpus"` // the CPUs that it asks for
	CPUs    string  `json:"cpus"`         // its CPUs
	N       int     `json:"n"`            // how many these are
	// all CPUs that it may use: with the share pool, where it keeps that
	MayUse    string `json:"may_use"`
	Packed    bool   `json:"packed,omitempty"`          // it shares these CPUs with others that have exclusive CPUs
	Unlimited bool   `json:"quota_unlimited,omitempty"` // its quota is lifted
	Partition bool   `json:"partition,omitempty"`       // it is a partition of the cpuset
}

// NoCPUs is a container that requests exclusive CPUs and has none.
type NoCPUs struct {
	Cgroup string `json:"cgroup"` // the path of the group
	Why    string `json:"why"`    // why it has none
}

// BoundCPUs is a group that another program has bound.
type BoundCPUs struct {
	Cgroup string `json:"cgroup"` // the path of the group
	CPUs   string `json:"cpus"`   // the CPUs that it is bound to
}

// lines are for people.
func (r *Reserve) lines(p *page) {
	if r == nil {
		return
	}
	policy := r.Policy
	if r.All {
		policy += ", for all containers"
	}
	p.printf("reserve (%s): %d with exclusive CPUs, %d refused; share pool %s (%d CPUs, at least %g)\n", policy,
		len(r.Exclusive), len(r.Refused), dash(r.Shared), r.CPUs, r.MinShared)
	for _, o := range r.Exclusive {
		var more []string
		for _, m := range []struct {
			is   bool
			text string
		}{{o.Packed, "packed with others"}, {o.MayUse != o.CPUs, "may use " + o.MayUse}, {o.Unlimited, "no quota"},
			{o.Partition, "a partition"}} {
			if m.is {
				more = append(more, m.text)
			}
		}
		p.printf("  %s: %s (%s)\n", o.Cgroup, o.CPUs,
			strings.Join(append([]string{fmt.Sprintf("request %g", o.Request)}, more...), ", "))
	}
	for _, b := range r.Pinned {
		p.printf("  %s: bound to %s by another program, left alone\n", b.Cgroup, b.CPUs)
	}
	if r.Shield != nil {
		p.printf("  %s: %d tasks of the root are kept in it\n", r.Shield.Cgroup, r.Shield.Tasks)
	}
	if r.Unbound > 0 && slices.ContainsFunc(r.Exclusive, func(o ExclusiveCPUs) bool { return !o.Partition }) {
		p.printf("  %d processes and kernel threads are in no group that can be bound, and may run on any CPU that "+
			"is in no partition\n", r.Unbound)
	}
}

func reserveMetrics() []metric[Reserve] {
	return []metric[Reserve]{
		gauge("reserve_exclusive_cpus", "Exclusive CPUs of containers.", nil, func(r Reserve) float64 {
			seen := map[string]int{}
			for _, o := range r.Exclusive {
				seen[o.CPUs] = o.N
			}
			n := 0
			for _, cpus := range seen {
				n += cpus
			}
			return float64(n)
		}),
		gauge("reserve_shared_cpus", "CPUs of everybody else.", nil,
			func(r Reserve) float64 { return float64(r.CPUs) }),
		gauge("reserve_containers", "Containers with exclusive CPUs.", nil,
			func(r Reserve) float64 { return float64(len(r.Exclusive)) }),
		gauge("reserve_refused", "Containers that request exclusive CPUs and have none.", nil,
			func(r Reserve) float64 { return float64(len(r.Refused)) }),
		gauge("reserve_pinned", "Groups that another program has bound to CPUs.", nil,
			func(r Reserve) float64 { return float64(len(r.Pinned)) }),
		gauge("reserve_unbound_processes", "Processes and kernel threads that no cpuset binds.", nil,
			func(r Reserve) float64 { return float64(r.Unbound) }),
		gauge("reserve_shield_tasks", "Tasks of the cpuset root that are kept in a group.", nil,
			func(r Reserve) float64 {
				if r.Shield == nil {
					return 0
				}
				return float64(r.Shield.Tasks)
			}),
	}
}
