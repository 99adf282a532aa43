package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	Aims         []aim           `json:"aims"`
	Samples      []sample        `json:"samples"`

	ended, present done // by agents that are dead, and by the present one
	life           int
}

// done is what an agent has done.
type done struct{ raises, refills int64 }

// aim is a part of the verdict.
type aim struct {
	Name string `json:"name"`
	Have string `json:"have"`
	Want string `json:"want"`
	Met  bool   `json:"met"`
}

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
	return fmt.Sprintf("%.1f MiB, %d descriptors and %d of groups, %d goroutines, %d threads, %d watches, %d map entries, journal %d KiB",
		float64(s.RSS)/(1<<20), s.Files, s.Open, s.Goroutines, s.Threads, s.Watches, s.Entries, s.Journal>>10)
}

// maxJournal bounds the journal: 4,096 records of some 200 bytes, and beside it, while it is written anew, one for each
// entry: two of each group, and those of groups of whose end the agent has not learned (internal/journal, compactAbove).
const maxJournal = 3 << 19

// maxMemory bounds the agent's memory. The chart limits it to 160Mi (deploy/helm/plimsoll/values.yaml), and a full node may
// have more containers than these.
const maxMemory = 96 << 20

// oftenIdle is the share of samples with an idle node from which raises are to be expected.
const oftenIdle = 0.5

// full says whether the machine had no room for raises most of the time.
func (r *result) full() bool { return float64(r.IdleSamples) < oftenIdle*float64(len(r.Samples)) }

// conclude judges what was measured. Life last is that of the agent that was not killed.
func (r *result) conclude(last int) {
	r.Growth = judge(r.Samples, r.Groups, last)
	for _, j := range r.Growth {
		r.Aims = append(r.Aims, aim{j.Quantity + " " + j.Where, string(j.Verdict), string(flat), j.met(r.full())})
	}
	none := func(name string, n int) {
		r.Aims = append(r.Aims, aim{name, fmt.Sprint(n), "0", n == 0})
	}
	some := func(name string, n int64) {
		r.Aims = append(r.Aims, aim{name, fmt.Sprint(n), "1 or more", n > 0})
	}
	var journal, memory int64
	for _, s := range r.Samples {
		journal, memory = max(journal, s.Journal), max(memory, s.RSS)
	}
	r.Aims = append(r.Aims, aim{"most memory", fmt.Sprintf("%.1f MiB", float64(memory)/(1<<20)), fmt.Sprintf("%d MiB at most", maxMemory>>20), memory <= maxMemory})
	r.Aims = append(r.Aims, aim{"largest journal", fmt.Sprintf("%d KiB", journal>>10), fmt.Sprintf("%d KiB at most", maxJournal>>10), journal <= maxJournal})
	none("lost resizes", len(r.Lost))
	none("files that differ after a stop", len(r.AfterStop))
	none("files that differ after kill -9 and restore", len(r.AfterRestore))
	none("eBPF maps that are left", r.LeftMaps)
	some("kills", r.Kills)
	some("failures of the API server", r.Flaps)
	some("checks for lost resizes", r.Checks)
	some("files that differ after kill -9 alone", int64(r.LeftByKill))
	if !r.full() {
		some("resizes at a raise", r.Owner.AtRaise)
	}
}

// Failed is an error that names the aims that were missed.
func (r *result) Failed() error {
	var missed []string
	for _, a := range r.Aims {
		if !a.Met {
			missed = append(missed, fmt.Sprintf("%s: %s, not %s", a.Name, a.Have, a.Want))
		}
	}
	if missed == nil {
		return nil
	}
	return errors.New("missed: " + strings.Join(missed, "; "))
}

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	o := r.Owner
	fmt.Fprintf(page, "%g s, %d containers in %d groups, cgroup %s, %d CPUs, seed %d\n", r.Seconds, r.Containers, r.Groups, r.Cgroup, r.CPUs, r.Seed)
	fmt.Fprintf(page, "Owner: %d groups started, %d jobs, %d resizes (%d at a raise; %d writes were refused and tried again, for %.1f s at most), "+
		"%d restarts of containers, %d pods replaced.\n", o.Started, o.Jobs, o.Resizes, o.AtRaise, o.Refused, o.Longest.Seconds(), o.Restarts, o.Replaced)
	fmt.Fprintf(page, "Agents: %d killed, until the next one answered %.1f s (most: %.1f s); %d raises, %d refills. The API server failed %d times.\n",
		r.Kills, experiment.MedianOf(r.Restarts, time.Duration.Seconds), longest(r.Restarts).Seconds(), r.Raises, r.Refills, r.Flaps)
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
	page.WriteByte('\n')
	rows = nil
	for _, a := range r.Aims {
		if !slices.ContainsFunc(r.Growth, func(j judged) bool { return a.Name == j.Quantity+" "+j.Where }) {
			rows = append(rows, []string{a.Name, a.Have, "aim: " + a.Want, met(a.Met)})
		}
	}
	experiment.Columns(page, 0, rows)
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

func met(is bool) string {
	if is {
		return "met"
	}
	return "missed"
}
