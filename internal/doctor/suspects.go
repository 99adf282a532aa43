package doctor

import (
	"fmt"
	"strings"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
)

const mostSuspects = 10 // containers that are named

// Suspect is a container whose runtimes cannot use a burst.
type Suspect struct {
	Name        string             `json:"name"`        // as in the status
	Cgroup      string             `json:"cgroup"`      // the path of its control group
	Parallelism report.Parallelism `json:"parallelism"` // why it cannot use a burst
}

// Suspects is what doctor says of the runtimes on this node.
type Suspects struct {
	Looked int `json:"containers_looked_at"` // containers with a limit and a known runtime
	// containers that were not looked at: the node has too many, or it took too long
	Left int       `json:"containers_left_out"`
	List []Suspect `json:"burst_unusable"` // containers whose runtimes cannot use a burst
}

// text writes the section of doctor.
func (s *Suspects) text(b *strings.Builder) {
	if s == nil {
		return
	}
	fmt.Fprintf(b, "\nRuntimes with fewer threads than a burst can use: %d of %d containers with a limit and a Go, "+
		"JVM or Node process%s\n", len(s.List), s.Looked, s.left())
	for i, one := range s.List {
		if i == mostSuspects {
			fmt.Fprintf(b, "  and %d more\n", len(s.List)-i)
			break
		}
		fmt.Fprintf(b, "  - %s: %s\n    to do: %s\n", oneLine(one.Name), oneLine(one.Parallelism.Verdict),
			oneLine(one.Parallelism.Next))
	}
}

func (s *Suspects) left() string {
	if s.Left == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d containers were not looked at)", s.Left)
}

// TasksOf says what the kernel can do with single tasks.
type TasksOf interface {
	HasSlices() (has bool, why string)
	HasCookies() (has bool, why string)
}

// Priorities are the facts about this machine by which the policy gives online work priority.
func Priorities(found cgroup.Features, tasks TasksOf) policy.Machine {
	m := policy.Machine{LeastWeight: 2, // MIN_SHARES, kernel/sched/sched.h
		SchedExtWhy: "not probed: schedExt is not requested"}
	if !strings.HasPrefix(found.Get(cgroup.FeatureVersion).Detail, cgroup.V1.String()) {
		m.LeastWeight = 1 // CGROUP_WEIGHT_MIN
	}
	m.Idle, m.IdleWhy = able(found, cgroup.FeatureIdle)
	m.Identity, m.IdentityWhy = able(found, cgroup.FeatureIdentity)
	m.Slice, m.SliceWhy = tasks.HasSlices()
	m.CoreSched, m.CoreSchedWhy = tasks.HasCookies()
	return m
}

// able says whether a feature is certainly there, in words.
func able(found cgroup.Features, name string) (bool, string) {
	f := found.Get(name)
	return f.State == cgroup.Yes, f.Detail
}
