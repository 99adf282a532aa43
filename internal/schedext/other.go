package schedext

import (
	"fmt"
	"log/slog"
	"time"

	"plimsoll/internal/report"
)

// Other watches for a sched_ext scheduler of another program. While one runs all tasks, the kernel enforces no quota
// and no burst (KERNEL.md). A raise would have no effect now, and would come into force when the scheduler ends. So all
// groups are kept at their limits meanwhile, as under our own scheduler.
type Other struct {
	Log  *slog.Logger
	name string
	why  string
	at   time.Time
}

// otherEvery is how often Other checks.
const otherEvery = time.Second

// ours is the name of our own scheduler in the kernel.
const ours = "plimsoll"

// Watch gets from running the scheduler that runs all tasks ("": none), unless it is the scheduler of keeper, and says
// whether it has changed. Without running there is never one.
func (o *Other) Watch(now time.Time, running func() string, keeper *Keeper) (changed bool) {
	if running == nil || now.Sub(o.at) < otherEvery {
		return false
	}
	name := running()
	if name == ours && keeper.Busy() {
		name = ""
	}
	changed = name != o.name
	switch {
	case changed && name == "":
		o.Log.Info("the sched_ext scheduler of another program is gone", "before", o.name)
	case changed:
		o.Log.Warn("a sched_ext scheduler runs all tasks: nothing is raised meanwhile", "scheduler", name, "before",
			o.name)
		o.why = fmt.Sprintf("kept at the limit: the sched_ext scheduler %s runs all tasks", name)
	}
	o.name, o.at = name, now
	return changed
}

// Why says why the scheduler keeps all groups at their limits; "": there is no scheduler. It makes no text, because the
// agent calls it for each group in each turn.
func (o *Other) Why() string {
	if o.name == "" {
		return ""
	}
	return o.why
}

// Problem reports the scheduler; "": there is none.
func (o *Other) Problem() string {
	if o.name == "" {
		return ""
	}
	return fmt.Sprintf(report.ProblemOtherScheduler, o.name)
}
