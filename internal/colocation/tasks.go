package colocation

import (
	"errors"
	"io/fs"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
)

// Tasks are the machine's, by thread id. They are read here, and set by the Writer.
type Tasks interface {
	apply.Tasks
	// NewCookie makes the cookie that offline tasks are given, if there is none yet.
	NewCookie() (uint64, error)
}

// TasksEvery is how often tasks are looked at of which others may have come. Those that these make have what they have.
const TasksEvery = 5 * time.Second

// countTasks counts the tasks of a group that hold each value.
func (c *Colocation) countTasks(key plan.Key) (map[plan.Value]int, error) {
	counts, err := apply.ReadTasks(c.Tree, c.Tasks, key.Path, key.Knob)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // what a task holds that cannot be read nobody knows: to set it anew says so, or does it
		c.Log.Debug("co-location", "cgroup", key.Path, "knob", key.Knob, "error", err)
		counts[key.Knob.Unset()]++
		err = nil
	}
	return counts, err
}

// cookie has a cookie at hand where core scheduling is wanted.
func (c *Colocation) cookie(asked strategy.Mechanism) {
	m := &c.Machine
	if asked != strategy.MechanismCoreSched || !m.CoreSched || m.Cookie != "" || c.Tasks == nil {
		return
	}
	id, err := c.Tasks.NewCookie()
	if err != nil {
		m.CoreSched, m.CoreSchedWhy = false, err.Error()
		return
	}
	m.Cookie = plan.Number(int64(id))
}
