package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func containerMetrics(detail Detail) metrics[Container] {
	labels := containerLabels()
	c := func(name, help string, value func(Totals) float64) metric[Container] {
		return counter("container_"+name, help, labels, func(c Container) float64 { return value(c.Totals) })
	}
	g := func(name, help string, value func(Container) float64) metric[Container] {
		return gauge("container_"+name, help, labels, value)
	}
	basic := []metric[Container]{
		c("usage_seconds_total", "CPU time used.", func(t Totals) float64 { return t.Usage.Seconds() }),
		c("periods_total", "Periods in which the group was runnable.",
			func(t Totals) float64 { return float64(t.Periods) }),
		c("throttled_periods_total", "Periods that ended throttled.",
			func(t Totals) float64 { return float64(t.Throttled) }),
		c("throttled_wall_seconds_total", "Wall time lost to throttling.",
			func(t Totals) float64 { return t.ThrottledWall.Seconds() }),
		c("above_limit_seconds_total", "CPU time used above the limit.",
			func(t Totals) float64 { return t.AboveLimit.Seconds() }),
		c("refills_total", "Refills that ended a throttle, or prevented one that was foreseen.",
			func(t Totals) float64 { return float64(t.Refills) }),
		c("wall_saved_seconds_total", "Wall time that throttles would have lasted longer without refills.",
			func(t Totals) float64 { return t.WallSaved.Seconds() }),
		g("limit_too_low", "1 when the container was throttled in more than half of the periods of a minute.",
			func(c Container) float64 { return bit(c.TooLow) }),
		g("limit_seconds", "Declared limit: CPU time per period; +Inf when there is none.",
			func(c Container) float64 { return seconds(c.Limit) }),
		g("period_seconds", "Period of the limit.", func(c Container) float64 { return c.Period.Seconds() }),
		g("quota_in_force_seconds", "Quota in force, in CPU time per period.",
			func(c Container) float64 { return seconds(c.Quota.InForce) }),
		g("burst_in_force_seconds", "Size of the burst buffer in force.",
			func(c Container) float64 { return seconds(c.Burst.InForce) }),
	}
	if detail == Basic {
		return basic
	}
	return append(basic, []metric[Container]{
		c("throttled_cpu_seconds_total", "Time throttled, summed over CPUs.",
			func(t Totals) float64 { return t.ThrottledTime.Seconds() }),
		c("bursts_total", "Periods in which the group took from its burst buffer.",
			func(t Totals) float64 { return float64(t.Bursts) }),
		c("burst_seconds_total", "CPU time that the group took from its burst buffer.",
			func(t Totals) float64 { return t.BurstTime.Seconds() }),
		c("raises_total", "Times that the quota was raised, from the limit or from a lower quota.",
			func(t Totals) float64 { return float64(t.Raises) }),
		c("raised_seconds_total", "Wall time with a raised quota.",
			func(t Totals) float64 { return t.Raised.Seconds() }),
		c("at_cap_total", "Throttles that were not ended, because the group had used up to its cap in that period.",
			func(t Totals) float64 { return float64(t.AtCap) }),
		c("at_cap_wall_seconds_total", "Wall time of the throttles that were not ended because of the cap.",
			func(t Totals) float64 { return t.AtCapWall.Seconds() }),
		g("peak_1s_cpus", "The most CPUs used in one second; 0 without throttle events from eBPF.",
			func(c Container) float64 { return c.second() }),
		g("peak_cpus", "The most CPUs used in one period of the limit; 0 without throttle events from eBPF.",
			func(c Container) float64 { return c.peak() }),
		g("quota_requested_seconds", "Quota that the agent requests, in CPU time per period.",
			func(c Container) float64 { return seconds(c.Quota.Requested) }),
		g("burst_requested_seconds", "Size of the burst buffer that the agent requests.",
			func(c Container) float64 { return seconds(c.Burst.Requested) }),
		g("paused", "1 while an operator keeps the container at its limit.",
			func(c Container) float64 { return bit(c.Paused != nil) }),
	}...)
}

// throttleClasses are the bounds of the histogram. They are the bounds of the eBPF programs that separate a throttle
// ended at once from one that lasted a period.
func throttleClasses() []time.Duration {
	const us = time.Microsecond
	return []time.Duration{256 * us, 1024 * us, 8192 * us, 65536 * us, 131072 * us, 1048576 * us}
}

func (t *Throttles) histogram(d *prometheus.Desc, labels []string) prometheus.Metric {
	buckets := map[float64]uint64{}
	for _, bound := range throttleClasses() {
		var n int64
		for _, l := range t.Lengths {
			if l.UpTo <= bound {
				n += l.N
			}
		}
		buckets[bound.Seconds()] = uint64(n)
	}
	return prometheus.MustNewConstHistogram(d, uint64(t.Ended), t.Wall.Seconds(), buckets, labels...)
}

// second is the most CPUs used in one second.
func (c Container) second() float64 {
	if c.Totals.Events == nil {
		return 0
	}
	return c.Totals.Events.Second.Seconds()
}

// peak is the most CPUs used in one period.
func (c Container) peak() float64 {
	if c.Totals.Events == nil {
		return 0
	}
	return ratio(c.Totals.Events.Peak, c.Period)
}
