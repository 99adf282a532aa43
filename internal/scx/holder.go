package scx

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Holder keeps a scheduler in force, and can put another one in its place.
type Holder struct {
	swaps  sync.Mutex // one after the other
	mu     sync.Mutex // of what follows
	object *Object
	now    *Attachment
	guard  *guard
}

// Hold puts an object in force, if the preflight finds nothing in its way. It is watched for a while: when a CPU has not
// run an ordinary task for so long, the scheduler is taken out again; for that the process has a real-time priority meanwhile.
func Hold(o *Object, most time.Duration) (*Holder, error) {
	loaded, err := o.Ready()
	if err != nil {
		return nil, err
	}
	h := &Holder{object: o}
	lower := raise(most)
	if h.now, err = loaded.Attach(); err != nil {
		lower()
		loaded.Close()
		return nil, err
	}
	h.guard = protect(h.now, most, time.Now().Add(probation), lower)
	return h, nil
}

// Status is what is in force.
type Status struct {
	State
	Since  time.Time `json:"since"`
	Pause  Pause     `json:"pause"` // of the last change
	Tries  int       `json:"tries"`
	Ended  string    `json:"ended,omitempty"` // why it is not in force any more
	Holder int       `json:"pid"`
}

// Status reads it.
func (h *Holder) Status() (Status, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	state, err := ReadState()
	if err != nil {
		return Status{}, err
	}
	s := Status{State: state, Since: h.now.Since, Pause: h.now.Pause, Tries: h.now.Tries}
	if state.State != enabled || state.Enabled != h.now.serial {
		s.Ended = h.guard.why()
	}
	return s, nil
}

// Swap puts another object in force. The kernel checks its programs first. Between the two schedulers tasks are run by
// the fair class. If the kernel then refuses the new one, the old one is put back. Where it is refused before, the old one
// is watched on for what is left of its first while.
func (h *Holder) Swap(o *Object, most time.Duration) (Status, error) {
	h.swaps.Lock()
	defer h.swaps.Unlock()
	h.mu.Lock()
	h.guard.stop() // and the process is an ordinary one while the programs are checked
	h.mu.Unlock()
	next, err := h.prepare(o)
	if err != nil {
		h.watchOn()
		return Status{}, err
	}
	spare, err := h.object.Load()
	if err != nil {
		next.Close()
		h.watchOn()
		return Status{}, err
	}
	if err := h.exchange(o, next, spare, most); err != nil {
		next.Close()
		return Status{}, err
	}
	return h.Status()
}

// watchOn has what is in force watched for the rest of its time.
func (h *Holder) watchOn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.guard; g.most > 0 && g.reason.Load() == nil && time.Now().Before(g.until) {
		h.guard = protect(h.now, g.most, g.until, raise(g.most))
	}
}

func (h *Holder) prepare(o *Object) (*Loaded, error) {
	list := slices.DeleteFunc(Preflight(o), func(f Finding) bool { return f.Check == checkVacant })
	if found := (Obstacle{list}); found.Any() {
		return nil, found
	}
	return o.Load()
}

func (h *Holder) exchange(o *Object, next, spare *Loaded, most time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	lower := raise(most)
	old, refused := h.now, error(nil)
	pause, err := during(func() error {
		err := old.detach()
		if err != nil {
			return err
		}
		if h.now, refused = next.attach(); refused == nil {
			return nil
		}
		h.now, err = spare.attach()
		return err
	})
	old.loaded.Close()
	if err != nil {
		lower()
		h.now = old
		spare.Close()
		return errors.Join(refused, fmt.Errorf("and the old scheduler %s is not in force any more: %w", old.Name, err))
	}
	h.now.Pause = pause
	h.guard = protect(h.now, most, time.Now().Add(probation), lower)
	if refused != nil {
		return fmt.Errorf("%w; the old scheduler %s is back in force", refused, old.Name)
	}
	spare.Close()
	h.object = o
	return nil
}

// Close takes the scheduler out of the kernel.
func (h *Holder) Close() (Pause, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.guard.stop()
	return h.now.Close()
}

// Ended says why the scheduler is not in force any more; "" while it is.
func (h *Holder) Ended() (string, error) {
	s, err := h.Status()
	return s.Ended, err
}
