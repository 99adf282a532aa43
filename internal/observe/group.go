package observe

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Level says whether a group is a pod's or a container's.
type Level string

// The levels.
const (
	LevelPod       Level = "pod"
	LevelContainer Level = "container"
)

// Group is what is known about one control group.
type Group struct {
	workload.Container
	Level   Level
	Pod     string        // its name
	Disk    cpu.Bandwidth // what the limit's files hold
	Ready   bool          // it contains a task: its owner has set it up
	Idle    bool          // cpu.idle of it or of a group above is set
	Starts  bool          // it is in its start
	Looked  bool          // Reading is of this turn
	Reading sample.Reading
	Quiet   time.Time // it has used no CPU from the previous reading until then; zero: not known
	Due     time.Time // when it is read again
	Since   time.Time // when it was first seen
	Around  *Group    // the scope around a container's group that has the same limit; nil: none
	// WhyPaused is why it is kept at its limit, whatever its strategy; "": it is not.
	WhyPaused string
	Retry     time.Time // when a refused write of its files is tried again; zero: there is none
	Attention
	DiskAt    time.Time    // when the files were read; zero: they are read again in the next turn
	threads   *threadMeter // nil: its use was never measured through its threads
	seen      int64        // the last turn in which it existed
	moved     time.Time    // when its counters last changed
	top       *Group       // its pod, if that is idle or was at the last reading
	idleUntil time.Time    // of a pod: until when it may be skipped as idle
	skipped   int64        // of a pod: the last turn in which it was skipped
	born      time.Time    // when its first task was seen; zero: it has had none yet
	open      bool         // its files are kept open
	answered  bool         // a throttle of it was answered lately
	old       bool         // it existed before the agent started
}

// Attention is what the decisions found about a group. It determines how often the group is read.
type Attention struct {
	Watched    bool // a decision may depend on its use: every reading must be complete
	Stable     bool // nothing to do until it uses CPU or a program writes its files
	Suppressed bool // its throttle events are suppressed: none can be answered before the next reading
	Throttled  bool // it was recently throttled in spite of the decisions
	Raised     bool // its quota is raised
	Bounded    bool // its time above the limit is bounded
	OwnCPUs    bool // it has exclusive CPUs, and can use no others
}

// Stale makes the next turn read all files of the group.
func (g *Group) Stale(now time.Time) {
	g.DiskAt, g.Due = time.Time{}, now
	g.MarkDue()
}

// MarkDue makes the next turn read all groups of the pod.
func (g *Group) MarkDue() {
	g.idleUntil = time.Time{}
	if g.top != nil {
		g.top.idleUntil = time.Time{}
	}
}

// Offline says whether a group is offline work.
func (g *Group) Offline() bool {
	return g.Class == workload.ClassBE || g.QOS.Rank() == strategy.Offline
}

// starting says whether a container is in its start. The age of a container from before the agent's start is unknown.
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

// readies tells a group around the container that it has processes: its own files may be read a minute later.
func (g *Group) readies(now time.Time, around *Group) {
	if around == nil || around.Ready || !g.Ready {
		return
	}
	if around.Ready = true; around.born.IsZero() {
		around.born = now
	}
}
