package meter

import (
	"testing"

	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

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
