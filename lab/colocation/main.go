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
	"errors"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
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
	return &settings{perRow: 30 * time.Second, seed: 1}
}

func main() { frame.Main("colocation", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.perRow, "seconds", "seconds of load for each row")
	set.StringVar(&s.names, "rows", "", "rows to measure, separated by commas (default: all that this machine has)")
	set.IntVar(&s.rounds, "rounds", 0, "rounds in which the rows take turns (0: of about 6 s each)")
	set.Float64Var(&s.rate, "rate", s.rate, "requests a second (0: 75 for each CPU; in a virtual machine 10)")
	set.Uint64Var(&s.seed, "seed", s.seed, "seed of the rows' order")
	set.StringVar(&s.SVG, "svg", "", "write a chart to this file")
	set.StringVar(&s.vm, "vm", "", "run in a virtual machine with this kernel, such as 6.18, which has sched_ext; "+
		"its response times are those of no machine")
	set.BoolVar(&s.emulated, "emulated", false, "the CPUs are emulated: a small document and a small film")
}

// emulatedRate is a load that two emulated CPUs can bear.
const emulatedRate = 10

// Check implements frame.Experiment.
func (s *settings) Check() (err error) {
	if s.rate == 0 && s.vm != "" {
		s.rate = emulatedRate
	}
	s.rate = cmp.Or(s.rate, 75*float64(runtime.NumCPU()))
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

const (
	guestMemory  = 2048 // MiB: the programs' libraries are large, and the guest has no disk
	bootPatience = 4 * time.Minute
	guestSlow    = 30 * time.Second // what a slot takes beside its load
)

// Guest runs the experiment in a virtual machine with another kernel, where that was asked for.
func (s *settings) Guest() (vm *frame.VM, script string) {
	if s.vm == "" {
		return nil, ""
	}
	slots := time.Duration(s.rounds * len(allRows()))
	return &frame.VM{Kernel: s.vm, Cgroup: "v2", CPUs: runtime.NumCPU(), Memory: guestMemory,
			Programs: []string{"nginx", "ffmpeg"},
			Span:     bootPatience + slots*(s.perRow/time.Duration(s.rounds)+guestSlow)},
		"mkdir -p /var/log/nginx /var/lib/nginx\n" +
			fmt.Sprintf("./colocation -emulated -plimsoll ./plimsoll -seconds %g -rounds %d -rate %g -seed %d "+
				"-json=%v -rows '%s'",
				s.perRow.Seconds(), s.rounds, s.rate, s.seed, s.JSON, s.names)
}

const (
	fileSize    = 60 << 10 // about a millisecond of compression
	smallFile   = 6 << 10
	connections = 8                // for each CPU, so that every worker of nginx has some
	timeout     = 10 * time.Second // of a request
	openAtOnce  = 512
	afterChange = time.Second // after a change, before it is measured
)

// bench is a measurement under way.
type bench struct {
	*frame.Bench
	*settings
	online, offline string // groups
	below           string // one for ffmpeg below another, as the kubelet has its pods
	agent           *experiment.Agent
	server          *frame.Site
	film            ffmpeg
	clients         []*load.Client
	next            atomic.Int64
	foremost        bool
}

// Measure measures all rows.
func (s *settings) Measure(ctx context.Context, f *frame.Bench) (*result, error) {
	b := &bench{Bench: f, settings: s, foremost: true, film: ffmpeg{size: filmSize}}
	b.film.binary = frame.Must(experiment.Program("ffmpeg"))
	document := fileSize
	if s.emulated {
		document, b.film.size = smallFile, smallFilm
	}
	b.server = frame.Must(frame.Nginx(document, "", frame.Gzip()...))
	for range connections * runtime.NumCPU() {
		c := load.NewClient(1)
		defer c.Close()
		b.clients = append(b.clients, c)
	}
	b.prepare(ctx)
	r := summarize(b.measureRounds(ctx), b.rows)
	r.Conditions = conditions{
		Machine: b.Machine(), Rate: s.rate,
		Seconds: s.perRow.Seconds(), Rounds: s.rounds, Seed: s.seed, Emulated: s.emulated, Foremost: b.foremost,
	}
	return r, nil
}

// prepare makes the groups as the kubelet has those of its pods, and starts all but ffmpeg.
func (b *bench) prepare(ctx context.Context) {
	frame.Must(b.AddParent("kubepods"))
	frame.Must(b.AddParent("kubepods/besteffort"))
	b.online, b.offline = frame.Must(b.Add("kubepods/online")), frame.Must(b.Add("kubepods/offline"))
	b.below = frame.Must(b.Add("kubepods/besteffort/offline"))
	b.Serve(b.server, b.online)
	b.Undo(b.film.remove)
	b.film.prepare(ctx)
	b.agent = b.Agent(experiment.Setup{})
	if len(b.rows) == 0 {
		b.rows = present(b.mechanisms(ctx), hasSchedExt())
	}
}

// measureRounds has the rows take turns.
func (b *bench) measureRounds(ctx context.Context) []figures {
	length := b.perRow / time.Duration(b.rounds)
	b.Say("%d rows, %d rounds of %.1f s each: about %v", len(b.rows), b.rounds, length.Seconds(),
		(time.Duration(b.rounds*len(b.rows)) * (length + 2*afterChange)).Round(time.Second))
	due := load.Constant(b.rate, length)
	slot := func(_ int, r row) figures { return b.slot(ctx, r, due) }
	return frame.Turns(b.Bench, b.rounds, b.seed, b.rows, slot, func(f figures) string {
		return fmt.Sprintf("%-9s p99 %5.2f ms  machine %3.0f %%  ffmpeg %5.1f frames/s", f.Row, f.P99, 100*f.Machine,
			f.Frames)
	})
}

// slot measures one row once.
func (b *bench) slot(ctx context.Context, r row, due []time.Duration) (f figures) {
	frame.Check(b.agent.Configure(b.configuration(r.mechanism(), r.slice())))
	b.Scope(ctx, func(slot *frame.Bench) {
		if r.beside() {
			slot.Undo(b.film.stop)
			b.film.start(ctx, func(pid int) error { return errors.Join(frame.Ordinary(pid), b.Enter(b.home(r), pid)) })
		}
		b.await(ctx, r) // the agent takes no notice of groups that are empty
		b.warmUp(ctx)
		var tasks watch
		slot.Undo(tasks.close)
		tasks.add(b.Tree(), b.online)
		var outcome *load.Outcome
		slow := &tail{}
		before, after := frame.Around(func() reading { return b.read(&tasks) }, func() {
			outcome = b.request(ctx, due, &tasks, slow)
			frame.Check(context.Cause(ctx))
		})
		f = between(r, before, after, outcome)
		f.Slowest = slow.mean()
	})
	return f
}

// warmUp opens the connections, and has this process come first once that is done.
func (b *bench) warmUp(ctx context.Context) {
	out := b.request(ctx, load.Constant(b.rate, afterChange), nil, nil)
	frame.Check(context.Cause(ctx))
	if out.Errors > 0 {
		frame.Check(fmt.Errorf("%d of %d requests failed: %w", out.Errors, out.Requests(), out.Cause))
	}
	if err := frame.ForemostWithKin(); err != nil && b.foremost { // it is said once
		b.Say("careful: the load generator competes with what it measures: %v", err)
		b.foremost = false
	}
}

// reading are the counters at one end of a slot.
type reading struct {
	at              time.Time
	online, machine time.Duration // CPU time used
	tasks           taskTimes     // of nginx
	frames          frames
}

func (b *bench) read(tasks *watch) reading {
	return reading{time.Now(), frame.Must(b.Used(b.online)), frame.Must(b.Tree().Usage("/")), frame.Must(tasks.now()),
		b.film.frames()}
}

// between is what came of a slot.
func between(r row, before, after reading, outcome *load.Outcome) figures {
	span := after.at.Sub(before.at).Seconds()
	f := figures{Row: r, Machine: (after.machine - before.machine).Seconds() / span / float64(runtime.NumCPU()),
		Online: (after.online - before.online).Seconds() / span}
	f.answered(outcome)
	if r.beside() {
		f.Frames = before.frames.perSecond(after.frames)
	}
	if n := float64(outcome.Requests()); n > 0 {
		tasks := after.tasks.since(before.tasks)
		f.Ran, f.Waited = experiment.Milliseconds(tasks.ran)/n, experiment.Milliseconds(tasks.waited)/n
	}
	return f
}
