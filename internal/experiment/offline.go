package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"time"
)

// leastWeight is the smallest that cpu.shares of v1 accepts; cpu.weight of v2 accepts it too.
const leastWeight = 2

// Offline is work that never ends, a process for each CPU, in groups that stand behind all others.
type Offline struct {
	groups    *Groups
	processes []*Child
	Behind    bool // the kernel verifiably runs it only when nothing else wants to (cpu.idle)
}

// StartOffline makes the groups and starts the work.
func StartOffline(root string) (*Offline, error) {
	groups, err := NewGroups(root, "offline")
	if err != nil {
		return nil, err
	}
	o := &Offline{groups: groups}
	if err := o.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start offline work: %w", err), o.Stop())
	}
	return o, nil
}

func (o *Offline) start() error {
	if err := o.stepBack(); err != nil {
		return err
	}
	cpus, err := Allowed()
	if err != nil {
		return err
	}
	for _, id := range cpus {
		group, err := o.groups.Add(fmt.Sprintf("cpu%d", id))
		if err != nil {
			return err
		}
		c, err := Launch(Spin(), func(pid int) error {
			// In this order: below 6.2 a cpuset forgets what it was tied to.
			return errors.Join(o.groups.Enter(group, pid), Bind(pid, id))
		})
		if err != nil {
			return err
		}
		o.processes = append(o.processes, c)
	}
	return nil
}

// Spin is a process that never stops to run, once it has been let in.
func Spin() *exec.Cmd { return exec.Command("/bin/sh", "-c", `read -r go; while :; do :; done`) }

// stepBack puts the upper group behind its siblings: below it, the groups are among themselves.
func (o *Offline) stepBack() error {
	err := o.groups.Tree().SetIdle(o.Base(), true)
	if err == nil {
		o.Behind = true
	}
	if errors.Is(err, fs.ErrNotExist) { // below 5.15
		err = o.groups.Tree().SetWeight(o.Base(), leastWeight)
	}
	return err
}

// Base is the upper group.
func (o *Offline) Base() string { return o.groups.Base() }

// Used is the CPU time that the work has used; 0 where there is none.
func (o *Offline) Used() (time.Duration, error) {
	if o == nil {
		return 0, nil
	}
	return o.groups.Used(o.Base())
}

// Stop ends the work and removes its groups.
func (o *Offline) Stop() error {
	return errors.Join(Each(o.processes, (*Child).Kill), o.groups.Close())
}
