// Command colocation measures what an offline task costs an online one on the same machine, and what each mechanism of
// this machine that puts the online one first takes off that cost: the published experiment with nginx and ffmpeg.
//
// Approach: nginx compresses a text for each of a constant rate of requests, each of which counts from when it was due;
// ffmpeg transcodes a generated film with x264 in twice as many threads as there are CPUs. Each row is one way to have
// them on the machine: nginx alone (baseline), both with equal shares (control), and both with one mechanism, set by a
// real agent. The rows take turns in rounds, and a row's figure is the median of its rounds. What nginx lost is split:
// the kernel counts how long its tasks waited on run queues, and the rest is what they then took longer to run
// (caches, memory, the sibling of a core).
//
// Known limits: the load generator runs on the same machine, in the place of another one: it comes before all ordinary
// tasks and its CPU time is part of the machine's. The published machines had many CPUs, this one may have few.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"time"

	"plimsoll/lab/frame"
)

// settings say what is measured.
type settings struct {
	frame.Settings
	names    string // of rows; "": all that this machine has
	rows     []row
	perRow   time.Duration // of load, all rounds together
	rounds   int
	rate     float64 // requests a second
	seed     uint64
	emulated bool   // the CPUs are: all is slow
	vm       string // kernel of a virtual machine to run in; "": this machine
}

// usual are the settings without flags.
func usual() *settings {
	return &settings{perRow: 30 * time.Second, rate: 75 * float64(runtime.NumCPU()), seed: 1}
}

func main() { frame.Main("colocation", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.perRow, "seconds", "seconds of load for each row")
	set.StringVar(&s.names, "rows", "", "rows to measure, separated by commas (default: all that this machine has)")
	set.IntVar(&s.rounds, "rounds", 0, "rounds in which the rows take turns (0: of about 6 s each)")
	set.Float64Var(&s.rate, "rate", s.rate, "requests a second (default: 75 for each CPU; in a virtual machine 10)")
	set.Uint64Var(&s.seed, "seed", s.seed, "seed of the rows' order")
	set.StringVar(&s.SVG, "svg", "", "write a chart to this file")
	set.StringVar(&s.vm, "vm", "", "run in a virtual machine with this kernel, such as 6.18, which has sched_ext; its response times are those of no machine")
	set.BoolVar(&s.emulated, "emulated", false, "the CPUs are emulated: a small document and a small film")
}

// emulatedRate is a load that two emulated CPUs can bear.
const emulatedRate = 10

// Check implements frame.Experiment.
func (s *settings) Check() (err error) {
	if s.vm != "" && !s.Given("rate") {
		s.rate = emulatedRate
	}
	if s.rounds == 0 {
		s.rounds = max(1, int(s.perRow.Seconds()/6+0.5))
	}
	if s.names != "" {
		s.rows, err = parseRows(strings.Split(s.names, ","))
	}
	slot := s.perRow / time.Duration(max(s.rounds, 1))
	switch {
	case err != nil:
	case s.rounds < 1 || slot < time.Second:
		err = fmt.Errorf("%d rounds in %v: must be 1 or more, of 1 s or more each", s.rounds, s.perRow)
	case s.rate*slot.Seconds() < fewRequests:
		err = fmt.Errorf("-rate %g for %v a round: a p99 needs %d requests or more", s.rate, slot, fewRequests)
	}
	return cmp.Or(err, frame.Within("-rate", s.rate, 1, 10000))
}

// Before runs the experiment in a virtual machine instead, where that was asked for.
func (s *settings) Before(ctx context.Context) (done bool, err error) {
	if s.vm == "" {
		return false, nil
	}
	return true, boot(ctx, s, s.vm)
}

const (
	guestMemory  = 2048 // MiB: the programs' libraries are large, and the guest has no disk
	bootPatience = 4 * time.Minute
	guestSlow    = 30 * time.Second // what a slot takes beside its load
)

// boot runs the experiment in a virtual machine with another kernel.
func boot(ctx context.Context, s *settings, kernel string) error {
	slots := time.Duration(s.rounds * len(allRows()))
	vm := frame.VM{Kernel: kernel, Cgroup: "v2", CPUs: runtime.NumCPU(), Memory: guestMemory, Programs: []string{"nginx", "ffmpeg"},
		Span: bootPatience + slots*(s.perRow/time.Duration(s.rounds)+guestSlow)}
	script := "mkdir -p /var/log/nginx /var/lib/nginx\n" +
		fmt.Sprintf("./colocation -emulated -plimsoll ./plimsoll -seconds %g -rounds %d -rate %g -seed %d -json=%v -rows '%s'",
			s.perRow.Seconds(), s.rounds, s.rate, s.seed, s.JSON, s.names)
	return vm.Run(ctx, "./lab/colocation", script, s.Plimsoll)
}
