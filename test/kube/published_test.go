//go:build kube

package kube

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/report"
)

// The pages that describe CPU Burst to its users: ACK's, "CPU Burst性能优化策略" (ack-koordinator), and Koordinator's,
// "CPU Burst" (v1.3). They have the same table of parameters, and different ways to say them.
const (
	ack  = "ACK"
	koor = "Koordinator"
	both = "ACK, Koordinator"
)

// row is one line of a page. check tests its claim on the kubelet, or a test of its own does.
type row struct {
	page, parameter, value string
	means                  string // as published, in short
	check                  func(*desk)
	test                   func(*testing.T)
}

// rows are all lines of both pages that say what a parameter does, or where it is said.
func rows() []row {
	return []row{
		// the table of parameters
		{both, "policy", "none", "off, and what was changed is as it was created", (*desk).nonePutsBack, nil},
		{both, "policy", "not said", "none", (*desk).nothingUnlessAsked, nil},
		{both, "policy", "cpuBurstOnly", "the kernel's burst and nothing else", (*desk).burstOnly, nil},
		{both, "policy", "cfsQuotaBurstOnly", "the quota and nothing else", (*desk).quotaOnly, nil},
		{both, "policy", "auto", "both", (*desk).bothMechanisms, nil},
		{both, "cpuBurstPercent", "not said", "1000: ten times the limit (mainline accepts one)", nil,
			TestDefaultPercentIsCutToTheLimit},
		{both, "cpuBurstPercent", "40, 1", "percent of the limit", func(d *desk) { d.burstOf(40); d.burstOf(1) }, nil},
		{both, "cpuBurstPercent", "10000, 10001", "at most 10000 (ranges: TestRanges, internal/config)", nil,
			TestBadAnnotationKeepsTheLastGoodValue},
		{both, "cfsQuotaBurstPercent", "not said", "300: the quota rises to three times the limit",
			func(d *desk) { d.cap("", 30*ms) }, nil},
		{both, "cfsQuotaBurstPercent", "200", "percent of the limit",
			func(d *desk) { d.cap(`, "cfsQuotaBurstPercent": 200`, 20*ms) }, nil},
		{both, "cfsQuotaBurstPercent", "100", "the limit: never raised",
			func(d *desk) { d.never(`, "cfsQuotaBurstPercent": 100`) }, nil},
		{both, "cfsQuotaBurstPeriodSeconds", "not said, -1", "at the cap for as long as it likes", (*desk).unbounded,
			nil},
		{both, "cfsQuotaBurstPeriodSeconds", "1", "at the cap for a second, then at the limit", (*desk).spends, nil},
		{both, "cfsQuotaBurstPeriodSeconds", "0", "never above the limit",
			func(d *desk) { d.never(`, "cfsQuotaBurstPeriodSeconds": 0`) }, nil},
		{both, "sharePoolThresholdPercent", "50", "a node that is used more has raised quotas put back",
			(*desk).busyNode, nil},

		// where it is said
		{both, "annotation of a pod", "policy", "one pod, live", nil, TestAnnotationSwitchesOnePod},
		{both, "annotation of a pod's template", "policy", "in force from the pod's first moment", (*desk).fromBirth,
			nil},
		{both, "annotation of a pod", "all four fields", "as printed on the pages", (*desk).allFields, nil},
		{ack, "kube-system/ack-slo-config", "auto, cpuBurstOnly, none", "all pods of the cluster",
			func(d *desk) { d.cluster("kube-system", "ack-slo-config") }, nil},
		{koor, "koordinator-system/slo-controller-config", "auto, cpuBurstOnly, none", "all pods of the cluster",
			func(d *desk) { d.cluster("koordinator-system", "slo-controller-config") }, nil},
		{both, "ConfigMap", "all five fields", "as printed on the pages", (*desk).printed, nil},
		{both, "annotation over ConfigMap", "field by field", "the pod has the last word", nil,
			TestConfigMapOfTheCluster},
		{ack, "koordinator-system/ack-slo-pod-config", "enabledNamespaces, disabledNamespaces",
			"the pods of some namespaces", nil, TestNamespaces},
		{ack, "alibabacloud.com/cpuBurst", "the older annotation", "still read", (*desk).older, nil},
		{koor, "koordinator.sh/qosClass", "LSR, BE", "not burst", nil, TestClassesThatAreNotBurst},
		{both, "apache-demo", "none, auto", "the tables of results", nil, TestApacheDemo},
	}
}

// desk has the pods for the rows: an idle one, and one that needs ten times its limit, which the agent leaves
// alone without an annotation or a ConfigMap.
type desk struct {
	*testing.T
	agent      *agent
	idle, busy *pod
	before     map[string]string
}

// newDesk starts both pods and the agent.
func newDesk(t *testing.T) *desk {
	t.Helper()
	pods := starts(t, want{name: "idle", containers: []container{sleeper("a", "100m", "500m")}},
		want{name: "busy", containers: []container{hog("a", "50m", "100m")}})
	d := &desk{T: t, idle: pods[0], busy: pods[1]}
	d.before = files(t)
	d.agent = newAgent(t, "strategy: {policy: none, sharePoolThresholdPercent: 100, startupSeconds: 0}\n",
		following()...)
	d.agent.busy = true // a row is about a busy node
	d.agent.start()
	return d
}

// run is a subtest with the pods of the desk. Afterwards no annotation is left.
func (d *desk) run(name string, check func(*desk)) {
	d.Run(name, func(t *testing.T) {
		on, idle, busy := *d, *d.idle, *d.busy
		on.T, on.idle, on.busy, idle.t, busy.t = t, &idle, &busy, t, t
		check(&on)
		idle.annotate(annotation + "-")
		busy.annotate(annotation + "-")
	})
}

// end checks that nothing is left, with the agent and after it.
func (d *desk) end() {
	d.Helper()
	eventually(d.T, wait, func() string { return cmp.Diff(d.before, files(d.T)) })
	d.agent.stop(syscall.SIGTERM)
	same(d.T, d.before)
}

// TestPublishedTables: every line of the published pages is true.
func TestPublishedTables(t *testing.T) {
	d := newDesk(t)
	for _, r := range rows() {
		switch {
		case (r.check == nil) == (r.test == nil):
			t.Fatalf("%s %s: which test checks it?", r.parameter, r.value)
		case r.check != nil:
			d.run(r.page+"/"+r.parameter+"="+r.value, func(d *desk) { d.Log(r.means); r.check(d) })
		}
	}
	d.end()
}

// ask annotates both pods. The fields begin with a comma.
func (d *desk) ask(policy, fields string) {
	d.Helper()
	for _, p := range []*pod{d.idle, d.busy} {
		p.annotate(fmt.Sprintf(`%s={"policy": %q%s}`, annotation, policy, fields))
	}
}

// busyLimit is the quota of the pod that needs more.
const busyLimit = 10 * ms

func (d *desk) quota() time.Duration { d.Helper(); return d.busy.limits()["a"].Quota }

func (d *desk) raised() string {
	if q := d.quota(); q <= busyLimit {
		return fmt.Sprintf("the quota is %v", q)
	}
	return ""
}

// atMost says when the quota is above a value.
func (d *desk) atMost(most time.Duration) func() string {
	return func() string {
		if q := d.quota(); q > most {
			return fmt.Sprintf("the quota is %v, at most %v", q, most)
		}
		return ""
	}
}

// share is the CPU time that the busy pod gets in a while, in limits.
func (d *desk) share(during time.Duration) float64 {
	d.Helper()
	read := func() time.Duration {
		used, err := cluster.groups.Usage(d.busy.containers["a"])
		if err != nil {
			d.Fatal(err)
		}
		return used
	}
	was, begin := read(), time.Now()
	time.Sleep(during)
	return float64(read()-was) / (float64(time.Since(begin)) / 10)
}

// limited checks that the busy pod stays at its limit, by the kernel's counters. A period at the edge may count whole.
func (d *desk) limited() {
	d.Helper()
	always(d.T, 500*ms, d.atMost(busyLimit))
	if share := d.share(2 * time.Second); share > 1.15 {
		d.Errorf("it had %.2f times its limit", share)
	}
}

func (d *desk) nonePutsBack() {
	d.ask("auto", "")
	d.idle.become(full(50 * ms))
	eventually(d.T, wait, d.raised)
	d.ask("none", "")
	eventually(d.T, wait, func() string { return cmp.Diff(d.before, files(d.T)) })
	d.limited()
}

func (d *desk) nothingUnlessAsked() {
	for _, p := range []*pod{d.idle, d.busy} {
		p.annotate(annotation + `={"cpuBurstPercent": 40, "cfsQuotaBurstPercent": 200}`)
	}
	always(d.T, 2*time.Second, func() string { return cmp.Diff(d.before, files(d.T)) })
}

func (d *desk) burstOnly() {
	d.ask("cpuBurstOnly", "")
	d.idle.become(full(50 * ms))
	d.busy.become(full(busyLimit))
	d.limited() // it never saves anything
}

func (d *desk) quotaOnly() {
	d.ask("cfsQuotaBurstOnly", "")
	eventually(d.T, wait, d.raised)
	d.idle.stays(none)
	if diff := cmp.Diff(none, d.busy.bursts()); diff != "" {
		d.Error(diff)
	}
}

func (d *desk) bothMechanisms() {
	d.ask("auto", "")
	d.idle.become(full(50 * ms))
	eventually(d.T, wait, d.raised)
}

func (d *desk) burstOf(percent int) {
	d.ask("cpuBurstOnly", fmt.Sprintf(`, "cpuBurstPercent": %d`, percent))
	d.idle.become(full(time.Duration(percent) * 50 * ms / 100))
}

// cap: the quota comes to this, and never above. What is missing of an eighth is not worth another write.
func (d *desk) cap(fields string, most time.Duration) {
	d.ask("cfsQuotaBurstOnly", fields)
	eventually(d.T, wait, func() string {
		if said := d.atMost(most)(); said != "" {
			d.Fatal(said)
		}
		if q := d.quota(); q < most-most/8 {
			return fmt.Sprintf("the quota is %v, not %v", q, most)
		}
		return ""
	})
	always(d.T, reaction, d.atMost(most))
}

func (d *desk) never(fields string) {
	d.ask("cfsQuotaBurstOnly", fields)
	time.Sleep(reaction)
	d.limited()
}

func (d *desk) unbounded() {
	d.ask("cfsQuotaBurstOnly", "")
	eventually(d.T, wait, d.raised)
	always(d.T, 3*time.Second, d.raised) // longer than the next row's
}

func (d *desk) spends() {
	d.ask("cfsQuotaBurstOnly", `, "cfsQuotaBurstPeriodSeconds": 1`)
	eventually(d.T, wait, d.raised)
	eventually(d.T, wait, d.atMost(busyLimit))
	d.limited()
}

// busyNode: a pod without a limit uses two CPUs.
func (d *desk) busyNode() {
	d.ask("cfsQuotaBurstOnly", "")
	eventually(d.T, wait, d.raised)
	start(d.T, want{name: "burns", containers: []container{hog("a", "", ""), hog("b", "", "")}})
	clusterStrategy(d.T, `"sharePoolThresholdPercent": 50`)
	eventually(d.T, wait, d.atMost(busyLimit))
	d.limited()
}

func (d *desk) fromBirth() {
	p := start(d.T, want{name: "born", annotations: map[string]string{annotation: `{"policy": "auto"}`},
		containers: []container{sleeper("a", "100m", "500m")}})
	p.become(full(50 * ms))
}

func (d *desk) allFields() {
	d.ask("auto", `, "cpuBurstPercent": 1000, "cfsQuotaBurstPercent": 300, "cfsQuotaBurstPeriodSeconds": -1`)
	d.idle.become(full(50 * ms))
	eventually(d.T, wait, d.raised)
}

func (d *desk) cluster(namespace, name string) {
	say := func(policy string) {
		configMap(d.T, namespace, name,
			map[string]string{"cpu-burst-config": fmt.Sprintf(`{"clusterStrategy": {"policy": %q}}`, policy)})
	}
	say("auto")
	d.idle.become(full(50 * ms))
	eventually(d.T, wait, d.raised)
	say("cpuBurstOnly")
	eventually(d.T, wait, d.atMost(busyLimit))
	d.busy.become(full(busyLimit))
	say("none")
	eventually(d.T, wait, func() string { return cmp.Diff(d.before, files(d.T)) })
}

func (d *desk) printed() {
	configMap(d.T, "kube-system", "ack-slo-config", map[string]string{"cpu-burst-config": `{
      "clusterStrategy": {
        "policy": "auto",
        "cpuBurstPercent": 1000,
        "cfsQuotaBurstPercent": 300,
        "sharePoolThresholdPercent": 50,
        "cfsQuotaBurstPeriodSeconds": -1
      }
    }`})
	d.idle.become(full(50 * ms))
	c, err := report.Find(d.agent.status().Containers, d.idle.containers["a"])
	if err != nil {
		d.Fatal(err)
	}
	s := c.Strategy
	if s.CPUBurstPercent != 1000 || s.CFSQuotaBurstPercent != 300 || s.CFSQuotaBurstPeriodSeconds != -1 ||
		s.SharePoolThresholdPercent != 50 {
		d.Errorf("%+v", s)
	}
}

func (d *desk) older() {
	d.idle.annotate(`alibabacloud.com/cpuBurst={"policy": "cpuBurstOnly"}`)
	d.idle.become(full(50 * ms))
	d.idle.event("CPUBurstDeprecated", annotation)
	d.idle.annotate("alibabacloud.com/cpuBurst-")
	d.idle.become(none)
}
