package scx

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Loaded is a scheduler whose programs the kernel has accepted, and which is not in force yet.
type Loaded struct {
	object *Object
	parts  *ebpf.Collection
	table  *ebpf.Map // of operations
}

// Load has the kernel check an object's programs. Nothing changes for any task.
func (o *Object) Load() (*Loaded, error) {
	spec := o.spec.Copy() // it may be loaded again
	types := btf.NewCache()
	kernel, err := types.Kernel()
	if err == nil {
		err = resolveKfuncs(spec, kernel)
	}
	if err != nil {
		return nil, fmt.Errorf("load the scheduler %s: %w", o.Name, err)
	}
	parts, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: types})
	if err != nil {
		return nil, fmt.Errorf("load the scheduler %s: %w", o.Name, err)
	}
	return &Loaded{object: o, parts: parts, table: parts.Maps[o.ops]}, nil
}

// Close gives up what was loaded.
func (l *Loaded) Close() { l.parts.Close() }

// Attachment is a scheduler in force. It ends with Close, with this process, or by the kernel's word.
type Attachment struct {
	Name   string
	Since  time.Time
	Stall  Stall // of the load
	Tries  int
	loaded *Loaded
	link   link.Link
	serial int64 // the kernel's count of schedulers, this one included
}

const (
	tries   = 5                      // plugsched's installer tries as often
	between = 500 * time.Millisecond // tries
)

// Attach puts a loaded scheduler in force. The kernel does it for all tasks or for none. While it is still busy with
// the last scheduler's end, Attach tries again, a few times.
func (l *Loaded) Attach() (*Attachment, error) {
	var a *Attachment
	p, err := during(func() (err error) { a, err = l.attach(); return err })
	if err != nil {
		return nil, err
	}
	a.Stall = p
	return a, nil
}

func (l *Loaded) attach() (*Attachment, error) {
	a := &Attachment{Name: l.object.Name, loaded: l}
	for {
		a.Tries++
		var err error
		if a.link, err = link.AttachStructOps(link.StructOpsOptions{Map: l.table}); err == nil {
			break
		}
		if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EAGAIN) || a.Tries == tries {
			return nil, fmt.Errorf("attach the scheduler %s, try %d: %w", a.Name, a.Tries, err)
		}
		time.Sleep(between)
	}
	a.Since = time.Now()
	state, err := ReadState()
	if err == nil && (state.State != enabled || state.Ops != a.Name) {
		err = fmt.Errorf("it ended at once: the kernel's state is %s %s", state.State, state.Ops)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach the scheduler %s: %w", a.Name, err), a.detach())
	}
	a.serial = state.Enabled
	return a, nil
}

// Alive says whether the scheduler still is in force, or has been ended by the kernel. One that is being ended is
// alive: it has not said why yet.
func (a *Attachment) Alive() (bool, error) {
	state, err := ReadState()
	return (state.State == enabled || state.State == disabling) && state.Enabled == a.serial, err
}

// Close removes the scheduler from the kernel, and waits until it runs no task.
func (a *Attachment) Close() (Stall, error) {
	p, err := during(a.detach)
	a.loaded.Close()
	return p, err
}

func (a *Attachment) detach() error {
	if err := a.link.Close(); err != nil {
		return fmt.Errorf("detach the scheduler %s: %w", a.Name, err)
	}
	for end := time.Now().Add(tries * between); ; time.Sleep(between / 50) {
		state, err := ReadState()
		if err != nil {
			return err
		}
		if state.State == disabled || state.Enabled != a.serial {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("detach the scheduler %s: the kernel's state is %s after %v", a.Name, state.State,
				tries*between)
		}
	}
}
