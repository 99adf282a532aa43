package agent

import (
	"errors"
	"io/fs"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/strategy"
)

// Tasks are the machine's, by thread id. They are read here, and set by the Writer.
type Tasks interface {
	apply.Tasks
	// NewCookie makes the cookie that offline tasks are given, if there is none yet.
	NewCookie() (uint64, error)
}

// tasksEvery is how often tasks are looked at of which others may have come. Those that these make have what they have.
const tasksEvery = 5 * time.Second

// taskLook keeps what the last look at tasks found.
type taskLook struct {
	at    time.Time
	found map[policy.Key]plan.Value
}

// knob reads what stands in a knob, of tasks not at every look.
func (a *Agent) knob(now time.Time, s policy.Setting) (plan.Value, error) {
	if !s.Knob.OfTasks() {
		return apply.Read(a.Tree, s.Path, s.Knob)
	}
	look := &a.priority.tasks
	if held, known := look.found[s.Key()]; known && now.Sub(look.at) < tasksEvery {
		return held, nil
	}
	held, err := apply.ReadTasks(a.Tree, a.Tasks, s.Path, s.Knob, s.Value, a.priority.knobs.Wrote(s.Key()))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", err
	case err != nil: // what a task holds that cannot be read nobody knows: to set it anew says so, or does it
		a.Log.Debug("co-location", "cgroup", s.Path, "knob", s.Knob, "error", err)
		held = s.Knob.Unset()
	}
	look.found[s.Key()] = held
	return held, nil
}

// learn takes note of tasks that were set: they need no look before the next one.
func (l taskLook) learn(results []plan.Result) {
	for _, r := range results {
		if r.Change.Knob.OfTasks() && r.Outcome == plan.Applied {
			l.found[policy.Key{ID: r.Change.Cgroup, Knob: r.Change.Knob}] = r.Change.To
		}
	}
}

// forgetTasks has tasks looked at anew, once in a while or where something else is asked for.
func (a *Agent) forgetTasks(now time.Time, news bool) {
	if look := &a.priority.tasks; news || now.Sub(look.at) >= tasksEvery {
		*look = taskLook{at: now, found: map[policy.Key]plan.Value{}}
	}
}

// cookie has a cookie at hand where core scheduling is wanted.
func (a *Agent) cookie(asked strategy.Mechanism) {
	m := &a.Machine
	if asked != strategy.MechanismCoreSched || !m.CoreSched || m.Cookie != "" || a.Tasks == nil {
		return
	}
	id, err := a.Tasks.NewCookie()
	if err != nil {
		m.CoreSched, m.CoreSchedWhy = false, err.Error()
		return
	}
	m.Cookie = plan.Number(int64(id))
}
