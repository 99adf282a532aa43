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
	"plimsoll/internal/diagnose/meter"
	"plimsoll/internal/probe"
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

	requests bool // response times are measured, too
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
a weight. Without it the shortfall is unknown.`,
		Example: `  plimsoll diagnose default/web/nginx --for 30s
  plimsoll diagnose '/lab/*' --config /etc/plimsoll/config.yaml --json
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
	flags.BoolVar(&f.requests, "requests", false,
		"measure how long the containers take to answer the requests at their TCP sockets, too")
	flags.BoolVar(&f.live, "live", false, "show one picture after the other, until Ctrl-C")
	jsonFlag(cmd, &f.json)
	return cmd
}

const (
	liveWindow     = 2 * time.Second
	shortestWindow = 2 * meter.Slice
)

func checkWindow(length time.Duration) error {
	if length < shortestWindow {
		return misusef("--for %s: at least %s", length, shortestWindow)
	}
	return nil
}

func (f diagnoseFlags) diagnose(ctx context.Context, cmd *cobra.Command, g *globals, args []string) error {
	out := cmd.OutOrStdout()
	if err := checkWindow(f.length); err != nil {
		return err
	}
	file, err := source{file: f.config}.load()
	if err != nil {
		return err
	}
	dir, tree, err := g.OpenTree()
	if err != nil {
		return err
	}
	defer dir.Close()
	known, subjects, err := g.subjects(ctx, tree, file, args)
	if err != nil {
		return err
	}
	o, err := meter.Open(tree, sysfs.NewHost("/"), subjects, known)
	if err != nil {
		return withHint(err, probe.Explain(err))
	}
	defer o.Close()
	var requests *meter.Requests // nil: not measured
	if f.requests {
		if requests, err = meter.RequestsOf(tree, subjects); err != nil {
			return withHint(err, probe.Explain(err))
		}
		defer requests.Close()
	}
	for {
		d, err := f.window(ctx, cmd, o, requests)
		if err != nil {
			return err
		}
		if f.live && !f.json {
			fmt.Fprint(out, clearScreen(out))
		}
		if err := show(out, d.Reached(g.flags()), f.json); err != nil || !f.live || ctx.Err() != nil {
			return err
		}
		if known, subjects, err := g.subjects(ctx, tree, file, args); err == nil { // else those of before
			_ = o.Follow(subjects, known) // one that ended just now is left out
			if err := requests.FollowContainers(tree, subjects); err != nil {
				return err
			}
		}
	}
}

// window measures once. Each picture of --live is a sign of life by itself.
func (f diagnoseFlags) window(ctx context.Context, cmd *cobra.Command, o *meter.Meter,
	requests *meter.Requests) (report.Diagnosis, error) {
	if !f.live {
		defer progress.For(bars(cmd), "measuring", f.length).Stop()
	}
	if err := requests.Begin(time.Now()); err != nil {
		return report.Diagnosis{}, err
	}
	d, err := o.Window(ctx, f.length)
	if err != nil {
		return d, err
	}
	err = requests.Describe(&d, time.Now())
	return d, err
}

// subjects are the containers to diagnose: the named ones, or all; and the containers beside them.
func (g *globals) subjects(ctx context.Context, tree *cgroup.Tree, file *config.File, args []string) (known,
	list []report.Container, err error) {
	here, err := g.containerIndex(ctx, tree, file)
	if err != nil {
		return nil, nil, err
	}
	known = here.Containers()
	if len(args) > 0 {
		list, err = here.Find(args)
		return known, list, err
	}
	if len(known) == 0 {
		err = withHint(errors.New("no container is found on this node"),
			"name control groups: `plimsoll diagnose '/lab/*'`")
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
