package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
)

// Collector turns a snapshot into metrics at each scrape. It keeps nothing between scrapes, so the series of a
// container end with the container.
type Collector struct {
	snapshot   func() (Status, error)
	detail     Detail
	containers metrics[Container]
	agent      metrics[Status]
	kubernetes metrics[Kubernetes]
	nri        metrics[NRI]
	flight     metrics[Flight]
	receipts   metrics[Receipts]
	colocation colocationMetrics
	scheduler  metrics[Scheduler]
	reserve    metrics[Reserve]
	waits      waitsMetrics
	requests   requestMetrics
	writes     *prometheus.Desc
	decisions  *prometheus.Desc
	throttles  *prometheus.Desc
	missing    *prometheus.Desc
	nodeState  *prometheus.Desc
	mode       *prometheus.Desc
	build      *prometheus.Desc
}

// Detail is how much is told of each container. A node has hundreds of them,
// and a series costs Prometheus some kilobytes.
type Detail string

// Basic is at most 12 series for a container, and none for a pod whose limit is the sum of its containers'
// (TestBasicMetricsAreFew).
const (
	Basic Detail = "basic"
	Full  Detail = "full"
)

// ParseDetail understands what a person wrote.
func ParseDetail(text string) (Detail, error) {
	switch d := Detail(text); d {
	case Basic, Full:
		return d, nil
	}
	return "", fmt.Errorf("%.40q is neither %s nor %s", text, Basic, Full)
}

// metric is one number of a T.
type metric[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(T) float64
}

// metrics are all numbers of a T.
type metrics[T any] []metric[T]

func (all metrics[T]) list() []*prometheus.Desc {
	var list []*prometheus.Desc
	for _, m := range all {
		list = append(list, m.desc)
	}
	return list
}

// collect sends nothing where there is no T.
func (all metrics[T]) collect(t *T, send sender, labels ...string) {
	if t == nil {
		return
	}
	for _, m := range all {
		send(m.desc, m.kind, m.value(*t), labels...)
	}
}

func counter[T any](name, help string, labels []string, value func(T) float64) metric[T] {
	return metric[T]{describe(name, help, labels...), prometheus.CounterValue, value}
}

func gauge[T any](name, help string, labels []string, value func(T) float64) metric[T] {
	return metric[T]{describe(name, help, labels...), prometheus.GaugeValue, value}
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("plimsoll_"+name, help, labels, nil)
}

// NewCollector makes a collector that takes a snapshot at each scrape.
func NewCollector(snapshot func() (Status, error), detail Detail) *Collector {
	return &Collector{
		snapshot:   snapshot,
		detail:     detail,
		containers: containerMetrics(detail),
		agent:      slices.Concat(nodeMetrics(), selfMetrics(), eventMetrics(), cutMetrics()),
		kubernetes: kubernetesMetrics(),
		nri:        nriMetrics(),
		flight:     flightMetrics(),
		receipts:   receiptMetrics(),
		colocation: newColocationMetrics(),
		scheduler:  schedulerMetrics(),
		reserve:    reserveMetrics(),
		waits:      newWaitsMetrics(),
		requests:   newRequestMetrics(),
		writes: describe("writes_total",
			"Writes to files of control groups and to tasks that were tried, by file and outcome.", "knob", "outcome"),
		decisions: describe("decisions_total",
			"Decisions of the agent, by kind: burst, raise, refill; refused-...: throttles not ended.", "kind"),
		throttles: describe("container_throttle_seconds", "How long throttles lasted, where eBPF reports them.",
			containerLabels()...),
		missing: describe("throttle_events_missing", "1 for each part of the programs in the kernel that could not "+
			"be loaded: balance, wakeups, periods or forecast.", "part"),
		nodeState: describe("node_state", "1 for the state that the guard sees the node in.", "state"),
		mode:      describe("mode", "1 for the mode that the agent is in: active or held.", "mode"),
		build: describe("build_info", "Always 1. The labels name the versions of the agent, of the kernel and of the "+
			"control groups.", "version", "kernel", "cgroup"),
	}
}

func nodeMetrics() []metric[Status] {
	g := func(name, help string, value func(Node) float64) metric[Status] {
		return gauge("node_"+name, help, nil, func(s Status) float64 { return value(s.Node) })
	}
	return []metric[Status]{
		g("used_cpus", "CPUs of the share pool in use, mean of the last second.",
			func(n Node) float64 { return n.Used }),
		g("capacity_cpus", "CPUs of the share pool.", func(n Node) float64 { return n.Capacity }),
		g("threshold_cpus", "CPUs of the share pool in use above which raised quotas are taken back.",
			func(n Node) float64 { return n.Threshold }),
		g("risk",
			"Part of the periods in which some container does not get what quota and burst admit; 0 without "+
				"loadLinePercent.", func(n Node) float64 { return n.risk().Now }),
		g("risk_target", "The largest node risk that loadLinePercent allows; 0 without loadLinePercent.",
			func(n Node) float64 { return n.risk().Target }),
		g("burst_share", "Part of the requested bursts that the load line allows.",
			func(n Node) float64 { return n.risk().Share }),
		g("granted_cpus", "CPUs that raised quotas allow above the limits.", func(n Node) float64 { return n.Granted }),
	}
}

func selfMetrics() []metric[Status] {
	c := func(name, help string, value func(Self) float64) metric[Status] {
		return counter(name, help, nil, func(s Status) float64 { return value(s.Self) })
	}
	g := func(name, help string, value func(Status) float64) metric[Status] {
		return gauge(name, help, nil, value)
	}
	return []metric[Status]{
		g("config_ok", "1 while the configuration on disk is the one in force.",
			func(s Status) float64 { return bit(s.ConfigOK) }),
		g("start_time_seconds", "When the agent started, in Unix time.",
			func(s Status) float64 { return unix(s.Started) }),
		g("last_turn_timestamp_seconds", "When the last turn ended, in Unix time; 0 before the first.",
			func(s Status) float64 { return unix(s.LastTurn) }),
		g("turn_p99_seconds", "99th percentile of the time that recent turns took.",
			func(s Status) float64 { return s.Self.TurnP99.Seconds() }),
		g("self_resident_memory_bytes", "Resident memory of the agent.",
			func(s Status) float64 { return float64(s.Self.RSS) }),
		c("self_cpu_seconds_total", "CPU time of the agent.", func(x Self) float64 { return x.CPU.Seconds() }),
		g("self_goroutines", "Goroutines of the agent.", func(s Status) float64 { return float64(s.Self.Goroutines) }),
		c("turns_total", "Turns of the agent's loop.", func(x Self) float64 { return float64(x.Turns) }),
		c("group_reads_total", "Times that the counters of a container or pod were read.",
			func(x Self) float64 { return float64(x.Looks) }),
		c("rescans_total", "Scans of the whole cgroup tree.", func(x Self) float64 { return float64(x.Rescans) }),
		c("events_lost_total", "Overflows of the inotify queue; a scan of all groups follows.",
			func(x Self) float64 { return float64(x.EventsLost) }),
		c("log_lines_dropped_total",
			"Lines that are not in the log: there were too many about one object, or nobody read them in time.",
			func(x Self) float64 { return float64(x.LogDropped) }),
	}
}

// risk has the target as a risk, as the metrics do.
func (n Node) risk() Risk {
	if n.Risk == nil {
		return Risk{Share: 1}
	}
	r := *n.Risk
	r.Target = 1 - r.Target
	return r
}

func eventMetrics() []metric[Status] {
	g := func(name, help string, value func(Events) float64) metric[Status] {
		return gauge(name, help, nil, func(s Status) float64 { return value(s.Events) })
	}
	return []metric[Status]{
		g("throttle_events", "1 while throttle events come from eBPF, 0 while throttles are polled for.",
			func(e Events) float64 { return bit(e.Subscribed) }),
		g("refill_realtime", "1 while throttles are answered at real-time priority.",
			func(e Events) float64 { return bit(e.Priority == "fifo") }),
		g("refill_delay_p50_seconds",
			"Median time from the begin of a throttle to its end by a refill, of the recent refills.",
			func(e Events) float64 { return e.DelayP50.Seconds() }),
		g("refill_delay_p99_seconds",
			"99th percentile of the time from the begin of a throttle to its end by a refill, of the recent refills.",
			func(e Events) float64 { return e.DelayP99.Seconds() }),
		counter("refills_unneeded_total",
			"Refills without a visible need: no throttle would have begun, or it ended by itself, or began about as "+
				"soon.", nil,
			func(s Status) float64 { return float64(s.Events.Unneeded) }),
		counter("refills_ineffective_total", "Refills after which the group was throttled all the same.", nil,
			func(s Status) float64 { return float64(s.Events.Ineffective) }),
		g("refills_off", "1 while nothing is refilled on this node, because refills have no effect.",
			func(e Events) float64 { return bit(e.RefillsOff != nil) }),
		counter("undone_writes_total", "Writes of a quota by its owner that a refill may have undone.", nil,
			func(s Status) float64 { return float64(s.Writes.Undone) }),
		counter("throttle_events_lost_total",
			"Throttle events that were lost on the way to the agent, which then reads all groups.", nil,
			func(s Status) float64 { return float64(s.Events.Lost) }),
	}
}

func seconds(d time.Duration) float64 {
	if d == cpu.Unlimited {
		return math.Inf(1)
	}
	return d.Seconds()
}

func bit(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range slices.Concat(c.containers.list(), c.agent.list(), c.kubernetes.list(), c.reserve.list(),
		c.scheduler.list(),
		c.nri.list(), c.flight.list(), c.receipts.list(), c.colocation.list(), c.waits.list(), c.requests.list(),
		[]*prometheus.Desc{c.writes, c.decisions, c.throttles, c.missing, c.nodeState, c.mode, c.build}) {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	s, err := c.snapshot()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.build, err)
		return
	}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	c.agent.collect(&s, send)
	c.kubernetes.collect(s.Kubernetes, send)
	c.nri.collect(s.NRI, send)
	c.flight.collect(s.Record, send)
	c.receipts.collect(s.Receipts, send)
	s.Colocation.collect(c.colocation, send)
	c.scheduler.collect(s.scheduler(), send)
	c.reserve.collect(s.Reserve, send)
	s.Waits.collect(c.waits, ch, send)
	s.Requests.collect(c.requests, send)
	send(c.build, prometheus.GaugeValue, 1, label(s.Version), label(s.Kernel), label(s.Cgroup))
	for _, mode := range []Mode{Active, Held} {
		send(c.mode, prometheus.GaugeValue, bit(s.Mode == mode), string(mode))
	}
	for _, m := range s.Events.Missing {
		send(c.missing, prometheus.GaugeValue, 1, label(m.Part))
	}
	for _, state := range NodeStates() {
		send(c.nodeState, prometheus.GaugeValue, bit(s.Node.State == state), state)
	}
	for kind, n := range s.Writes.Decisions {
		send(c.decisions, prometheus.CounterValue, float64(n), label(kind))
	}
	c.collectWrites(s, send)
	c.collectContainers(s, ch, send)
}

// sender sends one metric.
type sender func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string)

// collectWrites sends a zero for what did not happen yet: a rate over a series that begins with its first event
// does not see that event.
func (c *Collector) collectWrites(s Status, send sender) {
	knobs := map[plan.Knob]bool{plan.Quota: true, plan.Burst: true}
	for knob := range s.Writes.Results {
		knobs[knob] = true
	}
	for knob := range knobs {
		for _, outcome := range plan.Outcomes() {
			send(c.writes, prometheus.CounterValue, float64(s.Writes.Results[knob][outcome]), string(knob),
				string(outcome))
		}
	}
}

// collectContainers sends each path once: two series with the same labels would spoil the whole scrape.
func (c *Collector) collectContainers(s Status, ch chan<- prometheus.Metric, send sender) {
	seen, summed := map[string]bool{}, s.summed()
	for _, unit := range s.Containers {
		path := label(unit.Cgroup)
		if seen[path] || c.detail == Basic && unit.Level == "pod" && summed[unit.Name] == unit.Limit {
			continue
		}
		seen[path] = true
		labels := unit.labels()
		c.containers.collect(&unit, send, labels...)
		if c.detail == Basic {
			continue
		}
		c.waits.container(unit.Totals.Waited, labels, send)
		c.requests.container(unit.Requests, labels, ch, send)
		if e := unit.Totals.Events; e != nil {
			ch <- e.histogram(c.throttles, labels)
		}
	}
}

// summed is the sum of the limits of each pod's containers.
func (s Status) summed() map[string]time.Duration {
	sums := map[string]time.Duration{}
	for _, c := range s.Containers {
		if c.Level != "pod" && c.Pod != "" {
			if sums[c.Pod] == cpu.Unlimited || c.Limit == cpu.Unlimited {
				sums[c.Pod] = cpu.Unlimited
			} else {
				sums[c.Pod] += c.Limit
			}
		}
	}
	return sums
}
