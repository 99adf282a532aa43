package scx

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Running is a scheduler in force, which another one can replace.
type Running struct {
	swaps  sync.Mutex // one after the other
	mu     sync.Mutex // of what follows
	object *Object
	now    *Attachment
	guard  *guard
}

// Run puts an object in force, if its preflight passes. The scheduler is watched for a while: when a CPU has not run an
// ordinary task for so long, the scheduler is removed again. The process has a real-time priority meanwhile, to do
// that.
func Run(o *Object, most time.Duration) (*Running, error) {
	loaded, err := o.Ready()
	if err != nil {
		return nil, err
	}
	r := &Running{object: o}
	lower := raise(most)
	if r.now, err = loaded.Attach(); err != nil {
		lower()
		loaded.Close()
		return nil, err
	}
	r.guard = protect(r.now, most, time.Now().Add(probation), lower)
	return r, nil
}

// Status is what is in force.
type Status struct {
	State
	Since time.Time `json:"since"`           // since when it is in force
	Stall Stall     `json:"stall"`           // of the last change
	Tries int       `json:"tries"`           // times that its load was tried
	Ended string    `json:"ended,omitempty"` // why it is not in force any more
	PID   int       `json:"pid"`             // of the process that loaded it; 0: not `plimsoll sched`
}

// Status reads the state of the scheduler in force.
func (r *Running) Status() (Status, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	state, err := ReadState()
	if err != nil {
		return Status{}, err
	}
	s := Status{State: state, Since: r.now.Since, Stall: r.now.Stall, Tries: r.now.Tries}
	if state.State != enabled || state.Enabled != r.now.serial {
		s.Ended = r.guard.why()
	}
	return s, nil
}

// Swap puts another object in force. The kernel checks its programs first. Between the two schedulers tasks are run by
// the fair class. If the kernel then refuses the new one, the old one is put back. Where it is refused before, the old
// one is watched on for what is left of its first while.
func (r *Running) Swap(o *Object, most time.Duration) (Status, error) {
	r.swaps.Lock()
	defer r.swaps.Unlock()
	r.mu.Lock()
	r.guard.stop() // and the process is an ordinary one while the programs are checked
	r.mu.Unlock()
	next, err := r.prepare(o)
	if err != nil {
		r.watchOn()
		return Status{}, err
	}
	spare, err := r.object.Load()
	if err != nil {
		next.Close()
		r.watchOn()
		return Status{}, err
	}
	if err := r.exchange(o, next, spare, most); err != nil {
		next.Close()
		return Status{}, err
	}
	return r.Status()
}

// watchOn continues the watch of the scheduler in force until the end of its probation.
func (r *Running) watchOn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.guard; g.most > 0 && g.reason.Load() == nil && time.Now().Before(g.until) {
		r.guard = protect(r.now, g.most, g.until, raise(g.most))
	}
}

func (r *Running) prepare(o *Object) (*Loaded, error) {
	list := slices.DeleteFunc(Preflight(o), func(f Finding) bool { return f.Check == checkVacant })
	if found := (Obstacle{list}); found.Any() {
		return nil, found
	}
	return o.Load()
}

func (r *Running) exchange(o *Object, next, spare *Loaded, most time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	lower := raise(most)
	old, refused := r.now, error(nil)
	stall, err := during(func() error {
		err := old.detach()
		if err != nil {
			return err
		}
		if r.now, refused = next.attach(); refused == nil {
			return nil
		}
		r.now, err = spare.attach()
		return err
	})
	old.loaded.Close()
	if err != nil {
		lower()
		r.now = old
		spare.Close()
		err = errors.Join(refused, fmt.Errorf("and the old scheduler %s is not in force any more: %w", old.Name, err))
		why := err.Error()
		r.guard.reason.Store(&why)
		return err
	}
	r.now.Stall = stall
	r.guard = protect(r.now, most, time.Now().Add(probation), lower)
	if refused != nil {
		return fmt.Errorf("%w; the old scheduler %s is back in force", refused, old.Name)
	}
	spare.Close()
	r.object = o
	return nil
}

// Close removes the scheduler from the kernel.
func (r *Running) Close() (Stall, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.guard.stop()
	return r.now.Close()
}

// Ended says why the scheduler is not in force any more; "" while it is.
func (r *Running) Ended() (string, error) {
	s, err := r.Status()
	return s.Ended, err
}
