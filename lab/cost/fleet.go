package main

import (
	"context"
	"fmt"
	"path"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/lab/frame"
)

// size is the number of managed pods and containers.
type size struct {
	Pods       int `json:"pods"`
	Containers int `json:"containers"`
	idle       bool
}

// throttled is how many containers need more than their limit in the second scenario.
func (s size) throttled() int {
	if s.idle {
		return 0
	}
	return s.Containers / 10
}

// perPod spreads the containers evenly.
func (s size) perPod(pod int) int {
	n := s.Containers / s.Pods
	if pod < s.Containers%s.Pods {
		n++
	}
	return n
}

// wanted is the limit of an idle container, scarce that of a container that will be throttled: the least that the
// kernel accepts (kernel/sched/core.c, min_cfs_quota_period), so that the machine is far from full though the agent
// raises it to three times as much.
const (
	wanted = 50 * time.Millisecond
	scarce = time.Millisecond
)

// unit is one group.
type unit struct {
	name  string // below the upper group
	group string
	pod   string // the group of a container's pod; "" for a pod
	busy  bool   // a container that will be throttled, or its pod
}

// fleet is the groups, with a process in each container that sleeps.
type fleet struct {
	groups   *frame.Bench
	units    []unit // pods first
	spinners []*experiment.Child
}

// plan lays the fleet out. The throttled containers stand in different pods, as far as there are.
func (s size) plan(base string) []unit {
	var pods, containers []unit
	left := s.throttled()
	for round := 0; len(containers) < s.Containers; round++ {
		for p := range s.Pods {
			if round >= s.perPod(p) {
				continue
			}
			pod := fmt.Sprintf("pod%d", p)
			at := path.Join(base, pod)
			if round == 0 {
				pods = append(pods, unit{pod, at, "", left > 0})
			}
			name := fmt.Sprintf("%s/c%d", pod, round)
			containers = append(containers, unit{name, path.Join(base, name), at, left > 0})
			left--
		}
	}
	return append(pods, containers...)
}

// newFleet makes the groups, sets their limits, and puts a process into each container.
func newFleet(ctx context.Context, groups *frame.Bench, s size) *fleet {
	f := &fleet{groups: groups, units: s.plan(groups.Base())}
	sum := map[string]time.Duration{}
	for _, u := range f.units {
		frame.Check(context.Cause(ctx))
		if u.pod == "" {
			frame.Must(groups.AddParent(u.name))
			continue
		}
		frame.Must(groups.Add(u.name))
		frame.Check(groups.Limit(u.group, cpu.Bandwidth{Quota: u.limit()}))
		groups.Sleeper(u.group)
		sum[u.pod] += u.limit()
	}
	for pod, limit := range sum {
		frame.Check(groups.Limit(pod, cpu.Bandwidth{Quota: limit}))
	}
	return f
}

func (u unit) limit() time.Duration {
	if u.busy {
		return scarce
	}
	return wanted
}

// throttle starts a process with the load of a whole CPU in each busy container, for so much CPU time at most.
func (f *fleet) throttle() {
	frame.Check(f.close())
	for _, u := range f.units {
		if u.pod != "" && u.busy {
			f.spinners = append(f.spinners, frame.Must(f.groups.Spinner(u.group, time.Minute, nil)))
		}
	}
}

// stood counts the throttled periods of each container.
func (f *fleet) stood() map[string]int64 {
	periods := map[string]int64{}
	for _, u := range f.units {
		if u.pod != "" {
			periods[u.group] = frame.Must(f.groups.Tree().Stat(u.group)).Throttled
		}
	}
	return periods
}

// close ends the processes that spin.
func (f *fleet) close() error {
	defer func() { f.spinners = nil }()
	return experiment.Each(f.spinners, (*experiment.Child).Kill)
}
