package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/parallelism/inspect"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/programs"
	"plimsoll/internal/probe/runq"
	"plimsoll/internal/progress"
	"plimsoll/internal/report"
	"plimsoll/internal/sysfs"
)

// diagnoseFlags are what a person may choose about a diagnosis.
type diagnoseFlags struct {
	config string
	length time.Duration
	json   bool
	live   bool

	requests bool
}

func diagnoseCommand(g *globals) *cobra.Command {
	var f diagnoseFlags
	cmd := &cobra.Command{
		Use:   "diagnose [CONTAINER...]",
		Short: "Say why containers are slow: what keeps their threads from a CPU",
		Long: `Measure for a while what the threads of containers do: run, or wait for a CPU, and for which cause. The parts add
up to the CPU time that was wanted. Nothing is written to any control group, and no agent need run.

` + containersForms + `.
Without any, all containers of the node are measured.

What a container has reserved is its pod's request, or ` + "`request:`" + ` in the configuration (--config); it is never derived from
a weight. Without it the shortfall is unknown.

With --requests also how long the requests took that their servers answered over TCP, without any change to them, and for
how much of that they were throttled. Where a connection carries several requests at once (HTTP/2, gRPC) it cannot be told.`,
		Example: `  plimsoll diagnose default/web/nginx --for 30s
  plimsoll diagnose '/lab/*' --config /etc/plimsoll/config.yaml --json
  plimsoll diagnose default/web/nginx --requests
  plimsoll diagnose --live`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilAsked(cmd)
			defer stop()
			if f.live && !cmd.Flags().Changed("for") {
				f.length = liveWindow
			}
			return f.diagnose(ctx, cmd, g, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "configuration file, for the requests of plain groups (docs/CONFIG.md)")
	flags.DurationVar(&f.length, "for", 10*time.Second, "how long to measure; with --live, what one picture shows (2s)")
	flags.BoolVar(&f.live, "live", false, "go on until Ctrl-C, one picture after the other")
	flags.BoolVar(&f.requests, "requests", false, "also measure how long requests take, at the servers' TCP sockets (eBPF, Linux "+sinceRequests+")")
	jsonFlag(cmd, &f.json)
	return cmd
}

const (
	liveWindow     = 2 * time.Second
	shortestWindow = 2 * slice
	lookEvery      = time.Second // how often new groups are searched for
)

func (f diagnoseFlags) diagnose(ctx context.Context, cmd *cobra.Command, g *globals, args []string) error {
	out := cmd.OutOrStdout()
	if f.length < shortestWindow {
		return misusef("--for %s: at least %s", f.length, shortestWindow)
	}
	file, err := source{file: f.config}.load()
	if err != nil {
		return err
	}
	dir, tree, err := g.openTree()
	if err != nil {
		return err
	}
	defer dir.Close()
	known, subjects, err := g.subjects(ctx, tree, file, args)
	if err != nil {
		return err
	}
	o, err := newMeter(tree, sysfs.NewHost("/"), subjects, known, runq.Options{Stats: true})
	if errors.Is(err, programs.ErrUncounted) {
		o, err = newMeter(tree, sysfs.NewHost("/"), subjects, known, runq.Options{})
	}
	if err != nil {
		return withHint(err, probe.Explain(err))
	}
	defer o.probe.Close()
	if f.requests {
		if o.requests, err = newRequestMeter(tree, groupsOf(subjects)); err != nil {
			return withHint(err, requestsHint(err))
		}
		defer o.requests.close()
	}
	for {
		d, err := f.window(ctx, cmd, o)
		if err != nil {
			return err
		}
		if f.live && !f.json {
			fmt.Fprint(out, clearScreen(out))
		}
		if err := show(out, d, f.json); err != nil || !f.live || ctx.Err() != nil {
			return err
		}
		if known, subjects, err := g.subjects(ctx, tree, file, args); err == nil { // else those of before
			_ = o.follow(subjects, known) // one that ended just now is left out
			if o.requests != nil {
				o.requests.follow(groupsOf(subjects))
			}
		}
	}
}

// window measures once. Each picture of --live is a sign of life by itself.
func (f diagnoseFlags) window(ctx context.Context, cmd *cobra.Command, o *meter) (report.Diagnosis, error) {
	if !f.live {
		defer progress.For(bars(cmd), "measuring", f.length).Stop()
	}
	return o.window(ctx, f.length)
}

// subjects are the containers to diagnose: the named ones, or all; and the containers beside them.
func (g *globals) subjects(ctx context.Context, tree *cgroup.Tree, file *config.File, args []string) (known, list []report.Container, err error) {
	here, err := g.containerIndex(ctx, tree, file)
	if err != nil {
		return nil, nil, err
	}
	known = here.containers()
	if len(args) > 0 {
		list, err = here.find(args)
		return known, list, err
	}
	if len(known) == 0 {
		err = withHint(errors.New("no container is found on this node"), "name control groups: `plimsoll diagnose '/lab/*'`")
	}
	return known, known, err
}

// clearScreen returns the code that clears a terminal; "" where the output is no terminal.
func clearScreen(w io.Writer) string {
	if !terminal(w) {
		return ""
	}
	return "\x1b[H\x1b[2J"
}

// window measures once. It ends early, with the measurement so far, when the context does.
func (o *meter) window(ctx context.Context, length time.Duration) (report.Diagnosis, error) {
	before, err := o.overhead()
	if err != nil {
		return report.Diagnosis{}, err
	}
	if err := o.start(); err != nil {
		return report.Diagnosis{}, err
	}
	if err := o.watch(ctx, time.Now(), length); err != nil {
		return report.Diagnosis{}, err
	}
	elapsed := length
	if len(o.subjects) > 0 {
		elapsed = o.subjects[0].account.Split().Elapsed // all are read together
	}
	after, err := o.overhead()
	if err != nil {
		return report.Diagnosis{}, err
	}
	d := report.Diagnosis{Schema: report.DiagnosisSchema, Elapsed: elapsed, CPUs: len(o.online), Notes: o.notes(),
		Overhead: spent(after, before, elapsed, len(o.online))}
	d.Containers, err = o.describe()
	o.judgeRuntimes(ctx, d.Containers)
	return d, err
}

// judgeRuntimes adds to the containers whether their runtimes can use a burst, as far as there is time.
func (o *meter) judgeRuntimes(ctx context.Context, list []report.Diagnosed) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), inspectNodeTime) // Ctrl-C ends the measurement alone
	defer cancel()
	r := runtimes{tree: o.tree, online: o.online, reader: inspect.New("/proc")}
	for i := range list[:min(len(list), mostInspected)] {
		for _, s := range o.subjects {
			if s.container.Cgroup == list[i].Cgroup && ctx.Err() == nil {
				list[i].Parallelism = r.of(ctx, s.container)
			}
		}
	}
}

// watch reads slice by slice.
func (o *meter) watch(ctx context.Context, begin time.Time, length time.Duration) error {
	tick := time.NewTicker(slice)
	defer tick.Stop()
	for looked := begin; time.Since(begin) < length; {
		select {
		case <-ctx.Done():
			return o.read()
		case <-tick.C:
		}
		if err := o.read(); err != nil {
			return err
		}
		if time.Since(looked) >= lookEvery {
			looked = time.Now()
			o.numberNeighbours()
		}
	}
	return nil
}

// notes say what this kernel does not report, and what was lost.
func (o *meter) notes() []string {
	list := []string{}
	irq, steal := o.probe.Separates()
	if !irq {
		list = append(list, "this kernel does not subtract interrupts from the time of threads (CONFIG_IRQ_TIME_ACCOUNTING): they count for the thread that ran")
	}
	if !steal {
		list = append(list, "this kernel does not subtract stolen time from the time of threads (CONFIG_PARAVIRT_TIME_ACCOUNTING): it counts for the thread that ran")
	}
	if tasks, pairs := o.probe.Lost(); tasks > 0 || pairs > 0 {
		list = append(list, fmt.Sprintf("the tables were full: %d threads were not measured, and %d waits have no neighbour", tasks, pairs))
	}
	if n := o.probe.Missed(); n > 0 {
		list = append(list, fmt.Sprintf("%d switches had no event: the thread that ran after such a switch counts as the one before", n))
	}
	if o.tableFull {
		list = append(list, "the table of groups was full: some groups count for the group above them")
	}
	return append(list, o.requests.notes()...)
}
