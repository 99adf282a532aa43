package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

func TestSiblingsOf(t *testing.T) {
	topology := cpu.Topology{Places: []cpu.Place{{CPU: 0, Core: 7}, {CPU: 1, Core: 8}, {CPU: 2, Core: 7}, {CPU: 3, Core: 9}}}
	if diff := cmp.Diff(map[int]int{0: 2, 2: 0}, siblingsOf(topology)); diff != "" {
		t.Error(diff)
	}
}

func TestRankOf(t *testing.T) {
	online, offline := strategy.CPUQOS{Enable: true, GroupIdentity: 2}, strategy.CPUQOS{Enable: true, SchedIdle: 1}
	for _, c := range []struct {
		container workload.Container
		want      strategy.Rank
	}{
		{workload.Container{}, strategy.Neutral},
		{workload.Container{Class: workload.ClassLS}, strategy.Online},
		{workload.Container{Class: workload.ClassLSR}, strategy.Online},
		{workload.Container{Class: workload.ClassLSE}, strategy.Online},
		{workload.Container{Class: workload.ClassBE}, strategy.Offline},
		{workload.Container{Class: workload.ClassSystem}, strategy.Neutral},
		{workload.Container{Class: workload.ClassLS, QOS: offline}, strategy.Offline},
		{workload.Container{Class: workload.ClassBE, QOS: online}, strategy.Online},
	} {
		if got := rankOf(c.container); got != c.want {
			t.Errorf("%+v: %s, want %s", c.container, got, c.want)
		}
	}
}
