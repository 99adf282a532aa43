package frame

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"plimsoll/internal/experiment"
)

// Bench is what an experiment is measured on: control groups of its own, and what was started in them. What cannot be
// started ends the measurement.
type Bench struct {
	*experiment.Groups
	*Settings
	Say func(format string, args ...any) // tells of progress
	experiment.Cleanup
}

// Run makes a bench, has the experiment measure, and cleans up, however it ends.
func Run[R Findings](ctx context.Context, name string, e Experiment[R], say func(string, ...any)) (r R, err error) {
	err = With(ctx, name, e.common(), say, func(b *Bench) { r = Must(e.Measure(ctx, b)) })
	if err != nil {
		var none R
		return none, err
	}
	return r, nil
}

// With makes a bench for one step of an experiment, and takes it away again.
func With(ctx context.Context, name string, s *Settings, say func(string, ...any), do func(*Bench)) error {
	b := &Bench{Settings: s, Say: say}
	var err error
	switch s.Groups {
	case Plain:
		b.Groups, err = experiment.NewGroups(s.Root, name)
	case Pinnable:
		b.Groups, err = experiment.NewPinnableGroups(s.Root, name)
	}
	if err != nil {
		return err
	}
	if b.Groups != nil {
		b.Undo(b.Groups.Close)
	}
	return b.Unwind(ctx, Try(func() { do(b) }))
}

// Scope does a part of a measurement. What is started in it ends with it.
func (b *Bench) Scope(ctx context.Context, part func(*Bench)) {
	inner := &Bench{Groups: b.Groups, Settings: b.Settings, Say: b.Say}
	Check(inner.Unwind(ctx, Try(func() { part(inner) })))
}

// Agent starts an agent on the groups.
func (b *Bench) Agent(s experiment.Setup) *experiment.Agent {
	s.Binary, s.Root = b.Plimsoll, b.Root
	a := Must(experiment.StartAgent(s, b.Groups))
	b.Undo(a.Stop)
	return a
}

// Listening starts an agent whose page and metrics are served at an address on loopback.
func (b *Bench) Listening() (a *experiment.Agent, address string) {
	address = Must(FreeAddress())
	return b.Agent(experiment.Setup{Flags: []string{"--listen", address}}), address
}

// Serve starts a server in a group.
func (b *Bench) Serve(s experiment.Server, group string) {
	b.Undo(s.Stop)
	Check(s.Start(func(pid int) error { return b.Enter(group, pid) }))
}

// Launch starts a process in a group, and does with it what else is to be done before it begins.
func (b *Bench) Launch(cmd *exec.Cmd, group string, also ...func(pid int) error) *experiment.Child {
	c := Must(experiment.Launch(cmd, func(pid int) error {
		err := b.Enter(group, pid)
		for _, f := range also {
			err = errors.Join(err, f(pid))
		}
		return err
	}))
	b.Undo(c.Kill)
	return c
}

// Sleeper starts a process in a group that does nothing.
func (b *Bench) Sleeper(group string) { b.Undo(Must(b.Groups.Sleeper(group)).Kill) }

// Dir makes a directory for files.
func (b *Bench) Dir(name string) string {
	dir := Must(experiment.TempDir(name))
	b.Undo(func() error { return os.RemoveAll(dir) })
	return dir
}

// Offline keeps every CPU busy with offline work.
func (b *Bench) Offline() *experiment.Offline {
	o := Must(experiment.StartOffline(b.Root))
	b.Undo(o.Stop)
	return o
}

// Manages is an error as long as the agent does not manage so many groups.
func Manages(ctx context.Context, a *experiment.Agent, want int) error {
	s, err := a.Status(ctx)
	if err == nil && len(s.Containers) != want {
		err = fmt.Errorf("it knows %d of %d groups", len(s.Containers), want)
	}
	return err
}

// Machine is where something was measured. A result embeds it.
type Machine struct {
	Kernel string `json:"kernel"`
	Cgroup string `json:"cgroup"`
	CPUs   int    `json:"cpus"`
}

// Machine is this one, with the control groups of the bench.
func (b *Bench) Machine() Machine {
	return Machine{Kernel: experiment.Kernel(), Cgroup: b.Tree().Version().String(), CPUs: runtime.NumCPU()}
}
