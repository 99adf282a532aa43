package outcome

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// Note is an event of a quota or burst file, which is recorded once.
type Note struct {
	plan.Key
	Event  ledger.Event
	Found  plan.Value
	Base   plan.Value // the baseline from now on
	Undone bool       // a refill may have undone the owner's write
}

// Note records an event of a file. It returns the problem, "" if the event is none.
func (r *Recorder) Note(n Note) string {
	log := r.log.With("cgroup", n.Path, "knob", n.Knob, "found", n.Found, "limit", n.Base)
	problem := ""
	switch n.Event {
	case ledger.Resized:
		log.Log(context.Background(), r.newsOfResize(n), "the owner has resized the group: this is the limit now")
	case ledger.Rebased:
		log.Info("the declared limit changed")
	case ledger.Reset:
		log.Info("the owner has restored its value; ours is written again after a while")
	case ledger.Scaled:
		log.Info("the kernel has scaled the period, too short for its timer, and quota and burst with it")
		return ""
	case ledger.CameBack:
		log.Info("the owner's write of the quota has changed our burst; it is written again")
	case ledger.Overrode:
		log.Warn("another program wrote it: left alone")
		problem = fmt.Sprintf(report.ProblemForeign, r.called(n.ID), n.Knob, n.Found, n.Base)
	case ledger.Deviation:
		log.Warn("not the declared limit: left alone", "hint", "stop the agent, then `plimsoll restore --to-spec` on "+
			"the node itself, not in a pod")
		problem = fmt.Sprintf(report.ProblemNotDeclared, r.called(n.ID), n.Knob, n.Found, n.Base)
	case ledger.WasLost:
		why := "the kernel refused its owner's write, or its owner did not write it"
		if n.Undone {
			why = "the kernel may have undone its owner's write in a refill"
			r.writes.Undone++
		}
		log.Warn("a declared limit is not in force; writing it for the owner", "why", why)
		problem = fmt.Sprintf(report.ProblemOwnersWriteLost, r.called(n.ID), n.Knob, n.Base, n.Found, why)
	}
	r.Problem(n.Path+" "+string(n.Knob), problem)
	if g := r.groups[n.ID]; g != nil {
		g.knob(n.Knob).Problem = problem
	}
	return problem
}

// called is what problems call a group: what the table of the status calls it.
func (r *Recorder) called(id workload.ID) string {
	if g := r.groups[id]; g != nil {
		return cmp.Or(g.Name, id.Path)
	}
	return id.Path
}

// newsOfResize is the log level of a resize: the first limit of a new container is routine.
func (r *Recorder) newsOfResize(n Note) slog.Level {
	if g := r.groups[n.ID]; g == nil || g.limit == 0 || g.limit == cpu.Unlimited {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// Undone records that a quota may differ from what its owner has written, in a group without a declared limit. The
// value is left alone.
func (r *Recorder) Undone(g *Account, held time.Duration) {
	r.writes.Undone++
	g.undone = held
	r.Problem(g.Path+" undone", fmt.Sprintf(report.ProblemOwnersWriteUndone, r.called(g.ID), plan.Time(held)))
	r.log.Warn("the kernel may have undone an owner's write of a quota",
		"cgroup", g.Path, "quota", held, "why", "another program wrote it during a refill", "hint", "write it again")
}

// writtenAgain ends that problem when the value has changed, or the limit is declared by now: then the ledger judges.
func (r *Recorder) writtenAgain(g *Account) {
	if g.undone != 0 && (g.Disk.Quota != g.undone || g.Declared != nil) {
		g.undone = 0
		r.Problem(g.Path+" undone", "")
	}
}
