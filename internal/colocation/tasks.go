package colocation

import (
	"errors"
	"io/fs"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
)

// Tasks are the machine's tasks, by thread id. This package reads their knobs, and the writer sets them.
type Tasks interface {
	apply.Tasks
	// NewCookie makes the cookie for offline tasks, if there is none yet.
	NewCookie() (uint64, error)
}

// TasksEvery is how often a group is rescanned for tasks that moved in. Forked children inherit the setting.
const TasksEvery = 5 * time.Second

// countTasks counts the tasks of a group by value.
func (c *Colocation) countTasks(key plan.Key) (map[plan.Value]int, error) {
	counts, err := apply.ReadTasks(c.Tree, c.Tasks, key.Path, key.Knob)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // count an unreadable task as unset: the write sets it, or fails
		c.Log.Debug("co-location", "cgroup", key.Path, "knob", key.Knob, "error", err)
		counts[key.Knob.Unset()]++
		err = nil
	}
	return counts, err
}

// cookie makes a cookie where core scheduling is requested: the intents name it. Before the first write only a thread
// of this process has it.
func (c *Colocation) cookie(requested strategy.Mechanism) {
	m := &c.Machine
	if requested != strategy.MechanismCoreSched || !m.CoreSched || m.Cookie != "" || c.Tasks == nil {
		return
	}
	id, err := c.Tasks.NewCookie()
	if err != nil {
		m.CoreSched, m.CoreSchedWhy = false, err.Error()
		return
	}
	m.Cookie = plan.Number(int64(id))
}
