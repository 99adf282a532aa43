package main

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/journal"
	"plimsoll/internal/lease"
	"plimsoll/internal/lock"
	"plimsoll/internal/plan"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/task"
)

// deathTime is how long a killed process may take to end. It is in no hurry only where the kernel does not let it go.
const deathTime = 2 * time.Second

// watcher watches the agent of one state directory.
type watcher struct {
	place  lock.Place
	tree   *cgroup.Tree
	memory lease.Memory
	log    *slog.Logger
	said   map[string]string // the last complaint of each kind
}

// look looks once, and does what is to be done.
func (g *watcher) look() {
	beat, beatErr := lease.Read(g.place.StateDir)
	if beatErr != nil {
		g.complain("the heartbeat cannot be read", "error", beatErr) // and the last one counts
	}
	holder, err := lock.Holder(g.place)
	if err != nil {
		g.complain("the lock cannot be looked at", "error", err)
		return
	}
	g.memory = g.memory.Look(lease.Clock(), beat, holderOf(holder))
	if late := g.memory.Late(); late > 0 {
		g.log.Warn("the machine stood still, or was too busy to let this process look: limits may be put back later",
			"without_a_look", late.Round(time.Millisecond))
	}
	if !g.memory.Silent() {
		if beatErr == nil {
			g.said = nil
		}
		return
	}
	action := g.memory.Judge(g.entries())
	debug.FreeOSMemory() // the text of a journal is the largest thing there is
	if action == lease.Kill && !g.kill(holder) || action == lease.Wait {
		return
	}
	g.restore()
	debug.FreeOSMemory()
}

// holderOf is the holder as the lease has it. A stranger keeps nobody from the lock.
func holderOf(locked *lock.TakenError) lease.Holder {
	if locked == nil || locked.Stranger || locked.PID == 0 {
		return lease.Holder{}
	}
	return lease.Holder{Process: lease.Process{PID: locked.PID, Start: locked.Start}, Ours: locked.OurState}
}

// entries says whether the journal has any of this boot.
func (g *watcher) entries() bool {
	state, err := journal.Load(g.place.StateDir)
	boot, err2 := journal.BootID()
	if err = errors.Join(err, err2); err != nil {
		g.complain("cannot read the journal", "error", err)
		return false
	}
	return len(state.Entries) > 0 && state.BootID == boot
}

// kill kills the holder of the lock.
func (g *watcher) kill(holder *lock.TakenError) bool {
	g.complain("the agent sends no heartbeat: it is being killed", "pid", holder.PID, "command", holder.Command)
	err := lease.End(holder.PID, func() bool {
		now, err := lock.Holder(g.place)
		return err == nil && now != nil && holderOf(now) == holderOf(holder)
	}, deathTime)
	if err != nil {
		g.complain("the agent cannot be ended", "error", err)
		return false
	}
	g.log.Warn("the agent was killed", "pid", holder.PID)
	return true
}

// restore takes the lock, and puts back what the journal has.
func (g *watcher) restore() {
	taken, err := g.take()
	if err != nil {
		g.complain("nothing is restored", "error", err) // an agent that stood by may have been faster
		return
	}
	defer taken.Release()
	results, left, err := g.putBack()
	if err != nil {
		g.complain("nothing is restored", "error", err)
		g.memory = g.memory.Tried()
		return
	}
	if g.tell(results, left) > 0 || left > 0 { // a full disk keeps entries in the journal whose files are restored
		g.memory = g.memory.Tried()
	}
}

// take takes the lock, for as long as a restore lasts: a successor that waits keeps its place.
func (g *watcher) take() (*lock.Lock, error) {
	place := g.place
	place.Brief = true
	return lock.Take(place)
}

// tell logs what became of a restore, and returns how many files were refused.
func (g *watcher) tell(results []plan.Result, left int) (refused int) {
	outcomes := map[plan.Outcome]int{}
	for _, r := range results {
		outcomes[r.Outcome]++
		about := []any{"cgroup", r.Change.Cgroup.Path, "knob", r.Change.Knob, "in_force", r.InForce, "error", r.Err}
		switch r.Outcome {
		case plan.Refused:
			g.log.Error("could not be put back", about...)
		case plan.Trampled:
			g.log.Warn("left alone: the value is not the agent's", about...)
		case plan.Clamped:
			g.log.Warn("put back, but the kernel took another value", about...)
		}
	}
	refused = outcomes[plan.Refused]
	g.log.Warn("the agent sent no heartbeat: limits are put back", "files",
		outcomes[plan.Applied]+outcomes[plan.Clamped]+outcomes[plan.Skipped], "left_alone", outcomes[plan.Trampled],
		"gone", outcomes[plan.Gone], "refused", refused, "left_in_journal", left)
	return refused
}

// putBack restores as `plimsoll restore` does, and says how many entries are left in the journal. The caller has the
// lock.
func (g *watcher) putBack() (results []plan.Result, left int, err error) {
	boot, err := journal.BootID()
	if err != nil {
		return nil, 0, err
	}
	j, err := journal.Open(g.place.StateDir, boot, time.Now)
	if err != nil {
		return nil, 0, err
	}
	defer j.Close()
	for _, note := range j.Notes() {
		g.log.Warn("the journal is damaged", "state_dir", g.place.StateDir, "note", note)
	}
	debug.FreeOSMemory()
	host := sysfs.NewHost("/")
	possible, _ := host.Possible() // where it cannot be read, those that are online have to do
	w := apply.New(g.tree, j, time.Now)
	w.Tasks, w.Root, w.Possible, w.Online = &task.Kernel{}, "/", possible, host.Online
	results = w.Restore(nil, false)
	return results, len(j.Entries()), nil
}

// complain says once what is wrong, until it is wrong in another way: complaints that take turns are said once each.
func (g *watcher) complain(what string, about ...any) {
	if g.said == nil {
		g.said = map[string]string{}
	}
	if text := fmt.Sprint(about...); text != g.said[what] {
		g.said[what] = text
		g.log.Warn(what, about...)
	}
}
