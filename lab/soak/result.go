package main

import (
	"bytes"
	"fmt"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/lab/frame"
)

// result is what was measured.
type result struct {
	frame.Machine
	Containers   int             `json:"containers"`
	Groups       int             `json:"groups"` // pods and containers
	Seconds      float64         `json:"seconds"`
	Seed         uint64          `json:"seed"`
	Owner        counts          `json:"owner"`
	Flaps        int64           `json:"api_failures"`
	Kills        int64           `json:"kills"`
	Restarts     []time.Duration `json:"restarts_ns"` // until the agent answers
	Silent       int64           `json:"samples_without_answer"`
	Raises       int64           `json:"raises"`
	Refills      int64           `json:"refills"`
	IdleSamples  int64           `json:"samples_of_an_idle_node"`
	Checks       int64           `json:"checks_for_lost_resizes"`
	Lost         []string        `json:"lost_resizes"`
	AfterStop    []string        `json:"differences_after_stop"`
	LeftByKill   int             `json:"differences_after_kill"`
	AfterRestore []string        `json:"differences_after_restore"`
	LeftMaps     int             `json:"maps_left"`
	Growth       []judged        `json:"growth"`
	Samples      []sample        `json:"samples"`

	ended, present done // by agents that are dead, and by the present one
	life           int
}

// done is what an agent has done.
type done struct{ raises, refills int64 }

// count adds up what the agents have done.
func (r *result) count(life int, s report.Status) {
	if life != r.life {
		r.ended.raises += r.present.raises
		r.ended.refills += r.present.refills
		r.life = life
	}
	r.present = done{s.Writes.Decisions["raise"], s.Events.Refills}
	r.Raises, r.Refills = r.ended.raises+r.present.raises, r.ended.refills+r.present.refills
	if s.Node.State == string(policy.NodeIdle) {
		r.IdleSamples++
	}
}

// latest is what the present agent holds.
func (r *result) latest(life int) string {
	if len(r.Samples) == 0 || r.Samples[len(r.Samples)-1].Life != life {
		return "it has not learned of the pods"
	}
	s := r.Samples[len(r.Samples)-1]
	return fmt.Sprintf("%.1f MiB, %d descriptors and %d of groups, %d goroutines, %d threads, %d watches, %d map "+
		"entries, journal %d KiB",
		float64(s.RSS)/(1<<20), s.Files, s.Open, s.Goroutines, s.Threads, s.Watches, s.Entries, s.Journal>>10)
}

// maxJournal bounds the journal: 4,096 records of some 200 bytes, and beside it, while it is written anew, one for each
// entry: two of each group, and those of groups of whose end the agent has not learned (internal/journal,
// compactAbove).
const maxJournal = 3 << 19

// maxMemory bounds the agent's memory. The chart limits it to 160Mi (deploy/helm/plimsoll/values.yaml), and a full node
// may have more containers than these.
const maxMemory = 96 << 20

// oftenIdle is the share of samples with an idle node from which raises are to be expected.
const oftenIdle = 0.5

// full says whether the machine had no room for raises most of the time.
func (r *result) full() bool { return float64(r.IdleSamples) < oftenIdle*float64(len(r.Samples)) }

// Aims are that nothing grows or is lost, and that what shows it has happened.
func (r *result) Aims() []experiment.Figure {
	aim := func(name string, value, least, most float64) experiment.Figure {
		return experiment.Figure{Name: name, Value: value, AtLeast: least, AtMost: most, None: least == 0 && most == 0,
			Measured: true}
	}
	var grow int
	for _, j := range r.Growth {
		if !j.met(r.full()) {
			grow++
		}
	}
	var journal, memory int64
	for _, s := range r.Samples {
		journal, memory = max(journal, s.Journal), max(memory, s.RSS)
	}
	list := []experiment.Figure{
		aim("quantities that grow, or of which that is unclear", float64(grow), 0, 0),
		aim("most memory in MiB", float64(memory)/(1<<20), 0, maxMemory>>20),
		aim("largest journal in KiB", float64(journal)/(1<<10), 0, maxJournal>>10),
		aim("lost resizes", float64(len(r.Lost)), 0, 0),
		aim("files that differ after a stop", float64(len(r.AfterStop)), 0, 0),
		aim("files that differ after kill -9 and restore", float64(len(r.AfterRestore)), 0, 0),
		aim("eBPF maps that are left", float64(r.LeftMaps), 0, 0),
		aim("kills", float64(r.Kills), 1, 0),
		aim("failures of the API server", float64(r.Flaps), 1, 0),
		aim("checks for lost resizes", float64(r.Checks), 1, 0),
		aim("files that differ after kill -9 alone", float64(r.LeftByKill), 1, 0),
	}
	if !r.full() {
		list = append(list, aim("resizes at a raise", float64(r.Owner.AtRaise), 1, 0))
	}
	return list
}

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	o := r.Owner
	fmt.Fprintf(page, "%g s, %d containers in %d groups, cgroup %s, %d CPUs, seed %d\n", r.Seconds, r.Containers,
		r.Groups, r.Cgroup, r.CPUs, r.Seed)
	fmt.Fprintf(page, "Owner: %d groups started, %d jobs, %d resizes (%d at a raise; %d writes were refused and "+
		"tried again, for %.1f s at most), %d restarts of containers, %d pods replaced.\n", o.Started, o.Jobs,
		o.Resizes, o.AtRaise, o.Refused, o.Longest.Seconds(), o.Restarts, o.Replaced)
	fmt.Fprintf(page, "Agents: %d killed, until the next one answered %.1f s (most: %.1f s); %d raises, %d refills. "+
		"The API server failed %d times.\n", r.Kills, experiment.MedianOf(r.Restarts, time.Duration.Seconds),
		longest(r.Restarts).Seconds(), r.Raises, r.Refills, r.Flaps)
	if r.full() {
		fmt.Fprintf(page, "The machine was full: in %d of %d samples the node was idle. So raises were not expected, "+
			"and only descriptors and goroutines had to be clear.\n", r.IdleSamples, len(r.Samples))
	}
	fmt.Fprintf(page, "\nGrowth for each 1,000 groups started, with its interval of 99 %%.\n\n")
	rows := [][]string{{"quantity", "where", "growth", "from", "to", "verdict"}}
	for _, j := range r.Growth {
		rows = append(rows, append([]string{j.Quantity, j.Where}, j.cells(r.full())...))
	}
	experiment.Columns(page, 0, rows)
	frame.WriteAims(page, nil, r.Aims())
	for _, list := range [][]string{r.Lost, r.AfterStop, r.AfterRestore} {
		experiment.Lines(page, list)
	}
}

func longest(list []time.Duration) (most time.Duration) {
	for _, d := range list {
		most = max(most, d)
	}
	return most
}
