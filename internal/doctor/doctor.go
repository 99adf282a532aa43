// Package doctor judges what a kernel and a mount can do: what that means for each policy, and what to do about it.
package doctor

import (
	"fmt"
	"io"
	"strings"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/policy"
	"plimsoll/internal/printable"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// Schema names the format of `plimsoll doctor --json`. Fields are added, never renamed, within a version.
const Schema = "plimsoll.doctor/v1"

// Report is what the doctor says.
type Report struct {
	Schema   string          `json:"schema"`
	Version  string          `json:"version"`     // of Plimsoll
	Kernel   string          `json:"kernel"`      // the release of Linux
	Root     string          `json:"cgroup_root"` // where the control groups are mounted
	Features cgroup.Features `json:"features"`    // what the kernel and the mount can do
	Policies []Outlook       `json:"policies"`    // what each policy comes to here
	// the mechanisms that put online work before offline work
	Priority     []policy.Verdict   `json:"priority"`
	Preferred    strategy.Mechanism `json:"priority_auto"`     // the mechanism that `auto` comes to
	PreferredWhy string             `json:"priority_auto_why"` // why this one
	// what `--config` asks for; absent: no configuration was given
	Configured *Choice  `json:"priority_configured,omitempty"`
	Advice     []string `json:"advice"` // what to do, in words
	// whether containers can use a burst; absent: none could be looked at
	Runtimes *Suspects `json:"runtimes,omitempty"`
}

// The features that are probed beside those of package cgroup, and are judged here.
const (
	FeatureEvents = "throttle-events"
	FeatureTasks  = "tasks-visible"
	FeatureNRI    = "nri"
)

// FirstNRI is the first containerd that has NRI. It is off by default until 2.0.
const FirstNRI = "1.7"

// Refills says whether a rewritten burst refills.
func Refills(found cgroup.Features) bool {
	return found.Has(cgroup.FeatureBurst) && found.Get(cgroup.FeatureRefill).State != cgroup.No
}

// Choice is the mechanism that a configuration requests, and the one that this kernel can use.
type Choice struct {
	Asked     strategy.Mechanism `json:"asked"`     // the mechanism that the configuration asks for
	Mechanism strategy.Mechanism `json:"mechanism"` // the mechanism that this kernel can use
	Why       string             `json:"why"`       // why this one
}

// Judge says what the agent would make of a configuration.
func Judge(asked strategy.Colocation, machine policy.Machine) *Choice {
	c := &Choice{Asked: asked.Mechanism}
	if c.Mechanism, c.Why = policy.Choose(asked.Mechanism, machine); c.Mechanism != strategy.MechanismNone &&
		!asked.Enabled() {
		c.Mechanism, c.Why = strategy.MechanismNone, "no class is enabled"
	}
	return c
}

// Outlook is what a policy comes to on this machine.
type Outlook struct {
	Policy  strategy.Policy `json:"policy"`  // the policy
	Works   bool            `json:"works"`   // it can change something
	Meaning []string        `json:"meaning"` // what it does here, in words
}

// Examine draws the conclusions.
func Examine(version, kernel, root string, found cgroup.Features, machine policy.Machine) Report {
	auto, why := policy.Choose(strategy.MechanismAuto, machine)
	return Report{Schema: Schema, Version: version, Kernel: kernel, Root: root, Features: found,
		Policies: []Outlook{noneOutlook(found), burstOutlook(found), quotaOutlook(found), autoOutlook(found)},
		Priority: policy.Preflight(machine), Preferred: auto, PreferredWhy: why,
		Advice: advise(root, found)}
}

func noneOutlook(found cgroup.Features) Outlook {
	p := Outlook{strategy.None, true, []string{"nothing is written; throttling is measured and reported"}}
	if f := found.Get(cgroup.FeatureController); f.State == cgroup.No {
		p.Meaning = []string{"nothing is written, and nothing can be measured: " + f.Detail}
	}
	return p
}

// Obstacle is what keeps every policy from working, or "".
func Obstacle(found cgroup.Features) string {
	for _, name := range []string{cgroup.FeatureController, cgroup.FeatureWritable, cgroup.FeatureBandwidth,
		cgroup.FeatureEnforced, FeatureTasks} {
		if f := found.Get(name); f.State == cgroup.No {
			return f.Detail
		}
	}
	return ""
}

func burstOutlook(found cgroup.Features) Outlook {
	p := Outlook{Policy: strategy.CPUBurstOnly}
	why := Obstacle(found)
	if f := found.Get(cgroup.FeatureBurst); why == "" && f.State == cgroup.No {
		why = f.Detail + " (mainline has it since " + f.Since + ")"
	}
	if why != "" {
		p.Meaning = []string{"changes nothing: " + why}
		return p
	}
	p.Works = true
	p.Meaning = []string{aboveQuotaMeaning(found.Get(cgroup.FeatureAboveQuota))}
	if f := found.Get(cgroup.FeatureCounters); f.State == cgroup.No {
		p.Meaning = append(p.Meaning,
			"the kernel does not count bursts (mainline does since "+f.Since+"): reports show none")
	}
	return p
}

func aboveQuotaMeaning(f cgroup.Feature) string {
	switch f.State {
	case cgroup.Yes:
		return "cpuBurstPercent is in force as configured: this kernel accepts a burst above the quota"
	case cgroup.No:
		return "burst is capped at the quota on this kernel: cpuBurstPercent 1000 means 100 in force"
	}
	return "could not test whether this kernel accepts a burst above the quota: mainline caps it at the quota"
}

func quotaOutlook(found cgroup.Features) Outlook {
	p := Outlook{Policy: strategy.CFSQuotaBurstOnly}
	if why := Obstacle(found); why != "" {
		p.Meaning = []string{"changes nothing: " + why}
		return p
	}
	p.Works = true
	p.Meaning = []string{eventsMeaning(found), startMeaning(found),
		"quotas are raised for throttling that lasts, up to cfsQuotaBurstPercent of the limit"}
	if found.Get(cgroup.FeatureRefill).State != cgroup.No {
		p.Meaning = append(p.Meaning, "every write of a quota grants runtime at once: it is charged to the container")
	}
	if strings.HasPrefix(found.Get(cgroup.FeatureVersion).Detail, cgroup.V1.String()) {
		p.Meaning = append(p.Meaning,
			"on v1 a raise ends at the nearest limited ancestor's quota: a higher one is EINVAL")
	}
	return p
}

// eventsMeaning says how soon a throttle is answered.
func eventsMeaning(found cgroup.Features) string {
	events := found.Get(FeatureEvents)
	switch {
	case events.State != cgroup.Yes:
		return "throttles are polled for, and seen up to 100 ms late: " + events.Detail
	case !Refills(found):
		return "throttle events come from eBPF, and are answered by raising the quota: no burst can be rewritten here"
	}
	return "throttle events come from eBPF, and throttles are ended at once by rewriting the unchanged burst"
}

// startMeaning says what becomes of a container's start.
func startMeaning(found cgroup.Features) string {
	if !found.Has(FeatureEvents) || !Refills(found) {
		return "a container's start (startupSeconds) is as any other time: its quota may be raised in it, and what " +
			"it reads of it then is not its limit"
	}
	return "in a container's start (startupSeconds) throttles are ended one by one, and its quota stays"
}

func autoOutlook(found cgroup.Features) Outlook {
	burst, quota := burstOutlook(found), quotaOutlook(found)
	p := Outlook{Policy: strategy.Auto, Works: quota.Works}
	switch {
	case burst.Works:
		p.Meaning = []string{"burst first, as cpuBurstOnly; the quota is raised for what burst did not cover"}
	case quota.Works:
		p.Meaning = []string{"the same as cfsQuotaBurstOnly: there is no burst here"}
	default:
		p.Meaning = quota.Meaning
	}
	return p
}

// remedy is what to do or to know where a feature is in a state.
type remedy struct {
	feature string
	state   cgroup.State
	text    string
}

// advise lists what to know and to do: first what keeps something from working at all, then what bites,
// then what costs.
func advise(root string, found cgroup.Features) []string {
	if found.Get(cgroup.FeatureController).State == cgroup.No {
		return []string{"Nothing works without the cpu controller. Give the mount that has it with --cgroup-root, or " +
			"mount it. On v2 it must not be taken by a v1 mount, nor switched off by cgroup_disable=cpu."}
	}
	advice := []string{}
	add := func(list []remedy) {
		for _, r := range list {
			if found.Get(r.feature).State == r.state {
				advice = append(advice, r.text)
			}
		}
	}
	add(missing(root, found))
	if found.Has(cgroup.FeatureBurst) && found.Get(cgroup.FeatureKeepsBurst).State == cgroup.No {
		advice = append(advice, "On this kernel every write of cpu.max divides the burst by 1000 (fixed by "+
			"49217ea147df in 6.10 and in stable kernels such as 6.1.93). Plimsoll mends that after its own writes; "+
			"after others' the burst stays low. Update the kernel.")
	}
	if found.Get(cgroup.FeatureBurst).State != cgroup.No && !found.Has(cgroup.FeatureAboveQuota) {
		advice = append(advice, "A burst above a new, lower quota makes `docker update --cpus` and "+
			"`systemctl set-property CPUQuota=` fail with EINVAL (invalid argument). "+
			"Run `plimsoll release CONTAINER` first.")
	}
	add(costs())
	return advice
}

// missing are the remedies of what cannot work.
func missing(root string, found cgroup.Features) []remedy {
	return []remedy{
		{cgroup.FeatureWritable, cgroup.No, "The cgroups below " + root +
			" cannot be written. Run as root; in a container, " +
			"mount the node's " + root + " writable."},
		{cgroup.FeatureBandwidth, cgroup.Unknown,
			"No cgroup enables the cpu controller for its children, so there are no limits to look " +
				"after. To allow them: echo +cpu > " + root + "/cgroup.subtree_control"},
		{cgroup.FeatureBandwidth, cgroup.No, "This kernel has no CPU limits: it needs CONFIG_CFS_BANDWIDTH."},
		{cgroup.FeatureEnforced, cgroup.No,
			"Stop the sched_ext scheduler, or accept that no limit is enforced while it runs."},
		{cgroup.FeatureBurst, cgroup.No, burstRemedy(found.Get(cgroup.FeatureBurst))},
	}
}

// costs are the remedies of what works, and might work better.
func costs() []remedy {
	return []remedy{
		{cgroup.FeatureUsage, cgroup.No,
			"The use of CPU is measured through the threads of each cgroup, which costs more. " +
				"To avoid that, mount the cpuacct controller."},
		{cgroup.FeatureInotify, cgroup.No, "There are too few inotify watches to see new cgroups at once. " +
			"Raise them: sysctl -w fs.inotify.max_user_watches=65536 fs.inotify.max_user_instances=128"},
		{FeatureNRI, cgroup.No,
			"An in-place resize to less CPU meets the burst, and may fail once before the burst is lowered. " +
				"With NRI it " +
				"does not: containerd " + FirstNRI +
				" or later, with `disable = false` in [plugins.\"io.containerd.nri.v1.nri\"] of its configuration."},
		{cgroup.FeatureWithinNode, cgroup.No,
			"The limits add up to more than the machine: a container is not sure of its own " +
				"limit when all use theirs at once, with or without bursts. Lower some, or keep " +
				"sharePoolThresholdPercent low. " +
				"`plimsoll advise --live` says how often that happens."},
		{cgroup.FeatureWithinNode, cgroup.Yes,
			"The limits add up to no more than the machine: each container is sure of its own. " +
				"How often bursts on top of them coincide says `plimsoll advise --live`."},
	}
}

func burstRemedy(f cgroup.Feature) string {
	if strings.Contains(f.Detail, "sysctl") {
		return "Kernel burst is switched off. Switch it on: sysctl -w kernel.sched_cfs_bw_burst_enabled=1"
	}
	return "Kernel burst needs Linux " + f.Since + ". Until then `auto` works by raising quotas."
}

// Text writes the report for people.
func (e Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "plimsoll %s on Linux %s, cgroups at %s\n\n", e.Version, e.Kernel, e.Root)
	rows := [][]string{{"FEATURE", "HERE", "SINCE", "DETAIL"}}
	for _, f := range e.Features {
		rows = append(rows, []string{f.Name, string(f.State), orDash(f.Since), oneLine(f.Detail)})
	}
	b.WriteString(report.Table(rows))
	b.WriteString("\nWhat the policies come to here:\n")
	for _, p := range e.Policies {
		fmt.Fprintf(&b, "  %s\n", p.Policy)
		for _, m := range p.Meaning {
			fmt.Fprintf(&b, "    - %s\n", oneLine(m))
		}
	}
	e.priorityText(&b)
	e.Runtimes.text(&b)
	if len(e.Advice) > 0 {
		b.WriteString("\nWhat to know and to do:\n")
	}
	for i, a := range e.Advice {
		fmt.Fprintf(&b, "  %d. %s\n", i+1, a)
	}
	if _, err := io.WriteString(w, report.Wrapped(string(printable.Lines([]byte(b.String()))))); err != nil {
		return fmt.Errorf("write text: %w", err)
	}
	return nil
}

// priorityText says which mechanisms of `colocation` are available.
func (e Report) priorityText(b *strings.Builder) {
	fmt.Fprintf(b, "\nOnline before offline (colocation): mechanism auto comes to %s here (%s)\n", e.Preferred,
		e.PreferredWhy)
	if c := e.Configured; c != nil {
		fmt.Fprintf(b, "  configured: %s, which comes to %s (%s)\n", orDash(string(c.Asked)), c.Mechanism, c.Why)
	}
	var rows [][]string
	for _, v := range e.Priority {
		word := "no"
		if v.Usable {
			word = "yes"
		}
		rows = append(rows, []string{"  " + string(v.Mechanism), word, oneLine(v.Why)})
	}
	b.WriteString(report.Table(rows))
}

// oneLine keeps an error of several lines, as those of the kernel's check of a program are,
// from ending a row of a table.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), "; ")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
