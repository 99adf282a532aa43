package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"plimsoll/internal/experiment"
	"plimsoll/internal/report"
)

// until waits until a condition holds, and says whether it does in the end. An error ends it at once.
func until(ctx context.Context, wait time.Duration, holds func() (bool, error)) (bool, error) {
	for deadline := time.Now().Add(wait); ; {
		is, err := holds()
		if is || err != nil || time.Now().After(deadline) {
			return is, err
		}
		if err := experiment.Pause(ctx, 50*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// How long each step of the end may take.
const (
	settlePatience = time.Minute // the last resizes
	raisePatience  = 10 * time.Second
	mapsPatience   = 5 * time.Second // the kernel frees a map a moment after its last user
)

// end compares the files after an agent that is stopped, and after one that is killed and whose journal is restored.
func (k *soak) end(ctx context.Context) (err error) {
	k.Say("the end: waiting for the last resizes")
	if err := k.settle(ctx); err != nil {
		return err
	}
	if err := k.raise(ctx); err != nil {
		return err
	}
	if err := k.agent.Halt(); err != nil {
		return err
	}
	if k.result.AfterStop, err = k.differences(); err != nil {
		return err
	}
	if err := k.agent.Restart(); err != nil {
		return err
	}
	if err := k.raise(ctx); err != nil {
		return err
	}
	if err := k.agent.Kill(); err != nil {
		return err
	}
	left, err := k.differences()
	if err != nil {
		return err
	}
	k.result.LeftByKill = len(left)
	if err := k.agent.Restore(ctx); err != nil {
		return err
	}
	if k.result.AfterRestore, err = k.differences(); err != nil {
		return err
	}
	return k.leftMaps(ctx)
}

// settle carries out the resizes that are under way. Those that the kernel refuses to the end are lost.
func (k *soak) settle(ctx context.Context) error {
	var left []string
	settled, err := until(ctx, settlePatience, func() (bool, error) {
		k.owner.mu.Lock()
		defer k.owner.mu.Unlock()
		err := k.owner.carryOut(time.Now())
		left = k.owner.underWay()
		return left == nil, err
	})
	if !settled {
		k.result.Lost = append(k.result.Lost, left...)
	}
	return err
}

// raise gives the busy containers jobs, one after another, until a quota is raised. On a machine that is full, no quota
// is: then a burst must do. Without either, the end would prove nothing.
func (k *soak) raise(ctx context.Context) error {
	var any, next int
	raised, err := until(ctx, raisePatience, func() (bool, error) {
		list, _ := k.owner.busy()
		if err := list[next%len(list)].process.Write(rounds); err != nil {
			return false, err
		}
		next++
		s, err := k.agent.Status(ctx)
		var quotas int
		quotas, any = changed(s)
		return quotas > 0, err
	})
	if err == nil && !raised && any == 0 {
		err = errors.New("the agent changes no quota and no burst: the end would prove nothing")
	}
	return err
}

// differences compares all groups with a group of the same quota that no agent has known.
func (k *soak) differences() (list []string, err error) {
	f := k.owner.files
	for _, o := range k.owner.all() {
		at := k.Base() + "/" + template
		if err := f.limit(at, o.quota); err != nil {
			return nil, err
		}
		want, err := f.settings(at)
		if err != nil {
			return nil, err
		}
		have, err := f.settings(o.group)
		if err != nil {
			return nil, err
		}
		for _, d := range differ(want, have) {
			list = append(list, o.group+": "+d)
		}
	}
	return list, nil
}

// differ lists the files that are not the same.
func differ(want, have map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if text, ok := have[name]; !ok || text != want[name] {
			list = append(list, fmt.Sprintf("%s is %q, the owner's is %q", name, text, want[name]))
		}
	}
	return list
}

// leftMaps counts the maps of all agents that are still there.
func (k *soak) leftMaps(ctx context.Context) error {
	_, err := until(ctx, mapsPatience, func() (bool, error) {
		k.result.LeftMaps = 0
		for id := range k.maps {
			if m, err := ebpf.NewMapFromID(id); err == nil {
				k.result.LeftMaps++
				_ = m.Close()
			}
		}
		return k.result.LeftMaps == 0, nil
	})
	return err
}

// changed counts the groups with a value of the agent's in their quota, and in any of their files.
func changed(s report.Status) (quotas, any int) {
	for _, c := range s.Containers {
		if c.Quota.Changed {
			quotas++
		}
		if c.Quota.Changed || c.Burst.Changed {
			any++
		}
	}
	return quotas, any
}
