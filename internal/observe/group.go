package observe

import (
	"errors"
	"io/fs"
	"syscall"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Level is where a group stands.
type Level string

// The levels.
const (
	LevelPod       Level = "pod"
	LevelContainer Level = "container"
)

// Group is what is known of one control group.
type Group struct {
	workload.Container
	Level   Level
	Pod     string        // its name
	Disk    cpu.Bandwidth // what the limit's files hold
	Ready   bool          // a task is in it: the owner has set it up
	Idle    bool          // cpu.idle is set, of it or of a group above
	Starts  bool          // it is new, and in its start
	Reading sample.Reading
	Looked  bool      // the reading is of this turn
	Quiet   time.Time // it has used nothing from the reading before until then, at least; zero: not known
	Due     time.Time // when it is to be read again
	Since   time.Time // when it was first seen
	Attention
	DiskAt    time.Time // when the files were read; zero: to be read again
	threads   threadMeter
	seen      int64     // the last turn in which it was there
	moved     time.Time // when its counters last differed from those of the reading before
	top       *Group    // the pod that is idle, or was at the last reading
	idleUntil time.Time // of a pod: until when it may be skipped as idle
	skipped   int64     // of a pod: the last turn in which it was skipped
	open      bool      // its files are kept open
	born      time.Time // its first task was seen then; zero: it has none yet
	old       bool      // it was there before the agent
}

// Attention is what decisions say of a group, and how often it is read hangs on.
type Attention struct {
	Watched    bool // a decision may depend on what it uses: every reading is to be complete
	Stable     bool // nothing is to be done for it until it uses CPU, or something is written
	Suppressed bool // it is throttled, and nothing can be done about that before the next reading
	Throttled  bool // it was throttled of late all the same
	Raised     bool // its quota is raised
	Bounded    bool // its time above the limit is bounded
}

// Stale has everything of the group read at the next turn.
func (g *Group) Stale(now time.Time) {
	g.DiskAt, g.Due = time.Time{}, now
	g.MarkDue()
}

// MarkDue has all of the pod read in the next turn.
func (g *Group) MarkDue() {
	g.idleUntil = time.Time{}
	if g.top != nil {
		g.top.idleUntil = time.Time{}
	}
}

// Offline says whether a group is to yield.
func (g *Group) Offline() bool {
	return g.Class == workload.ClassBE || g.QOS.Rank() == strategy.Offline
}

// starting says whether a container is in its start. Of one that was there before the agent nobody knows how old it is.
func (r *Reader) starting(now time.Time, g *Group, pod string) bool {
	most := time.Duration(g.Strategy.StartupSeconds) * time.Second
	if g.Level != LevelContainer || g.old || g.Started || g.born.IsZero() || now.Sub(g.born) >= most {
		return false
	}
	if pod == "" {
		pod = g.Path
	}
	return r.starts.spend(pod, g.born, now) < most
}

// Gone says whether an error means that the group was removed.
func Gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) }
