package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/capacity"
	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
	"plimsoll/internal/progress"
	"plimsoll/internal/report"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/sampler"
)

// length is how long to record, as a time or in periods.
type length struct {
	time    time.Duration
	periods int // 0: as many as the time has
}

// flags adds --for and --samples to a command.
func (l *length) flags(cmd *cobra.Command, usually time.Duration, what string) {
	cmd.Flags().DurationVar(&l.time, "for", usually, "how long to record"+what)
	cmd.Flags().IntVar(&l.periods, "samples", 0, "periods to record"+what+", in place of --for")
}

func (l length) check(cmd *cobra.Command) error {
	both := cmd.Flags().Changed("for") && cmd.Flags().Changed("samples")
	if both {
		return withHint(misusef("--for %s and --samples %d both say how long to record", l.time, l.periods),
			"leave one of them out")
	}
	if l.time == 0 && l.periods == 0 {
		return withHint(misusef("give --for or --samples"), "--for 1h records an hour")
	}
	return nil
}

// in is the number of periods.
func (l length) in(period time.Duration) (int, error) {
	n := l.periods
	if n == 0 {
		n = int(l.time / period)
	}
	if n < 2 || n > trace.MaxSamples {
		asked := fmt.Sprintf("--for %s", l.time)
		if l.periods != 0 {
			asked = fmt.Sprintf("--samples %d", l.periods)
		}
		return n, withHint(misusef("%s: that is %d periods of %s, and 2 to 2^31 can be recorded", asked, n, period),
			"36000 are an hour of periods of 100 ms")
	}
	return n, nil
}

// recordFlags are what a person may choose about a recording.
type recordFlags struct {
	length  length
	out     string
	force   bool
	cgroups int
	json    bool
}

func recordCommand(g *globals) *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record CONTAINER...",
		Short: "Record how much CPU containers use in each period, for `simulate` and `advise`",
		Long: `Record how much CPU time containers use in each period of their limits (100 ms where there is none), several on one
clock. Nothing is written to any control group.

` + containersForms + `.

Record without a limit, or with one that is never reached: under a limit the container cannot use what it wants. The
longer the better: an hour has 36,000 periods. Ctrl-C ends the recording early and keeps it.

FILE.npy is a numpy array of shares of the machine, with its metadata beside it in FILE.npy.json; FILE.csv is one file.
With --out - that one goes to standard output, and what it is like to standard error: out of a pod whose files
cannot be copied.`,
		Example: `  plimsoll record default/web/nginx --for 1h
  plimsoll record /lab/a /lab/b --samples 6000 --out both.csv
  kubectl -n plimsoll exec POD -- /plimsoll record default/web/nginx --for 1m --out - > web.csv`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilAsked(cmd)
			defer stop()
			return record(ctx, cmd, g, f, args)
		},
	}
	flags := cmd.Flags()
	f.length.flags(cmd, 0, "")
	flags.StringVar(&f.out, "out", "",
		"file, .npy or .csv; - for standard output, as .csv (default: the container's name, .npy)")
	flags.BoolVar(&f.force, "force", false, "replace the file if it exists")
	flags.IntVar(&f.cgroups, "cgroups", 10, "show what this many of each container would take of the machine")
	jsonFlag(cmd, &f.json)
	return cmd
}

func (f recordFlags) check(stdout io.Writer) error {
	if f.cgroups < 1 {
		return misusef("--cgroups %d: at least 1", f.cgroups)
	}
	if f.out == toStdout {
		return noTerminal(stdout)
	}
	if err := trace.Known(f.out); err != nil {
		return misusef("--out %s: %w", f.out, err)
	}
	if _, err := os.Stat(f.out); err == nil && !f.force {
		return withHint(fmt.Errorf("%s: %w", f.out, fs.ErrExist), "choose another --out, or give --force to replace it")
	}
	if info, err := os.Stat(path.Dir(f.out)); err != nil || !info.IsDir() {
		return withHint(misusef("--out %s: there is no such folder", f.out), "make it first")
	}
	return nil
}

func record(ctx context.Context, cmd *cobra.Command, g *globals, f recordFlags, args []string) error {
	if err := f.length.check(cmd); err != nil {
		return err
	}
	dir, tree, err := g.OpenTree()
	if err != nil {
		return err
	}
	defer dir.Close()
	here, err := g.containerIndex(ctx, tree, &config.File{})
	if err != nil {
		return err
	}
	groups, err := here.Find(args)
	if err != nil {
		return err
	}
	if f.out == "" {
		f.out = fileName(groups)
	}
	r, done, err := sampler.New(tree, groups)
	if err != nil {
		return err
	}
	defer done()
	periods, err := f.length.in(r.Period)
	if err := errors.Join(err, f.check(cmd.OutOrStdout())); err != nil {
		return err
	}
	h := sysfs.NewHost("/")
	if len(groups) == 1 {
		if r.Edge = sampler.Edge(ctx, tree, groups[0].Cgroup, r.Period); !r.Edge.IsZero() {
			r.Counters = func() (cpu.Counters, error) { return tree.Stat(groups[0].Cgroup) }
		}
	}
	before, err := h.Self()
	if err != nil {
		return err
	}
	end := showProgress(&r, bars(cmd), periods)
	begin := time.Now()
	t, stopped := r.Run(ctx, periods)
	end()
	cost := report.RecordingCost{Elapsed: time.Since(begin)}
	if after, err := h.Self(); err == nil {
		cost.CPU = after.CPU - before.CPU
	}
	return f.keep(cmd, t, cost, periods, stopped)
}

// keep saves what was recorded, also when the recording ended early, and says what it is like.
func (f recordFlags) keep(cmd *cobra.Command, t trace.Trace, cost report.RecordingCost, periods int,
	stopped error) error {
	if t.Len() == 0 {
		return errors.Join(errors.New("nothing was recorded"), stopped)
	}
	file, describe, save := f.out, cmd.OutOrStdout(), func() error { return trace.Save(f.out, t) }
	if file == toStdout {
		file, describe, save = "standard output", cmd.ErrOrStderr(), func() error {
			return trace.Write(cmd.OutOrStdout(), t)
		}
	}
	if err := save(); err != nil {
		return err
	}
	if err := show(describe, capacity.Describe(file, t, cost, f.cgroups), f.json); err != nil {
		return err
	}
	if errors.Is(stopped, context.Canceled) {
		fmt.Fprintf(cmd.ErrOrStderr(), "plimsoll: stopped after %d of %d periods; they are in %s\n", t.Len(), periods,
			file)
		return nil
	}
	if stopped != nil {
		return fmt.Errorf("ended after %d of %d periods, which are in %s: %w", t.Len(), periods, file, stopped)
	}
	return nil
}

// fileName is that of the one container, or of all.
func fileName(groups []report.Container) string {
	if len(groups) > 1 {
		return "recording.npy"
	}
	name := path.Base(strings.TrimSuffix(groups[0].Name, "/"))
	if name == "." || name == "/" || strings.HasPrefix(name, ".") {
		name = "recording"
	}
	return name + ".npy"
}

// showProgress shows on a terminal how far a recording is, until end is called.
func showProgress(r *trace.Recorder, w io.Writer, samples int) (end func()) {
	b := progress.Start(w, "recording", int64(samples))
	r.Progress = func(done int) { b.Set(int64(done)) }
	return b.Stop
}
