package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/runq"
	"plimsoll/internal/report"
	"plimsoll/internal/sysfs"
)

// diagnoseFlags are what a person may choose about a diagnosis.
type diagnoseFlags struct {
	config string
	length time.Duration
	json   bool
	live   bool
}

func diagnoseCommand(g *globals) *cobra.Command {
	var f diagnoseFlags
	cmd := &cobra.Command{
		Use:   "diagnose [CONTAINER...]",
		Short: "Tell why containers are slow: who or what keeps their threads from a CPU",
		Long: `Measure for a while what the threads of containers do: run, or wait for a CPU, and behind whom or what. The parts add
up to the CPU time that was wanted. Nothing is written to any control group, and no agent need run.

CONTAINER is a name as in ` + "`plimsoll status`" + `, the last part of one, a cgroup path, a glob of names or paths, or the beginning
(4 characters or more) of a container ID; without any, all containers of the node.

What a container has reserved is its pod's request, or ` + "`request:`" + ` in the configuration (--config); it is never derived from
a weight. Without it everything but the shortfall is told.`,
		Example: `  plimsoll diagnose default/web/nginx --for 30s
  plimsoll diagnose '/lab/*' --config /etc/plimsoll/config.yaml --json
  plimsoll diagnose --live`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilAsked(cmd)
			defer stop()
			if f.live && !cmd.Flags().Changed("for") {
				f.length = liveWindow
			}
			return f.diagnose(ctx, cmd.OutOrStdout(), g, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "configuration file, for the requests of plain groups (docs/CONFIG.md)")
	flags.DurationVar(&f.length, "for", 10*time.Second, "how long to measure; with --live, what one picture shows (2s)")
	flags.BoolVar(&f.live, "live", false, "go on until Ctrl-C, one picture after the other")
	jsonFlag(cmd, &f.json)
	return cmd
}

const (
	liveWindow     = 2 * time.Second
	shortestWindow = 2 * slice
	lookEvery      = time.Second // how often groups that are new are looked for
)

func (f diagnoseFlags) diagnose(ctx context.Context, out io.Writer, g *globals, args []string) error {
	if f.length < shortestWindow {
		return fmt.Errorf("--for %s: at least %s", f.length, shortestWindow)
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
	known, err := g.requests(ctx, tree, file)
	if err != nil {
		return err
	}
	subjects, err := g.pick(tree, known, file, args)
	if err != nil {
		return err
	}
	o, err := observe(tree, sysfs.NewHost("/"), subjects, known, runq.Options{Stats: true})
	if err != nil {
		return withHint(err, probe.Explain(err))
	}
	defer o.probe.Close()
	for {
		d, err := o.window(ctx, f.length)
		if err != nil {
			return err
		}
		if f.live && !f.json {
			fmt.Fprint(out, clearScreen(out))
		}
		if err := show(out, d, f.json); err != nil || !f.live || ctx.Err() != nil {
			return err
		}
		if known, err := g.requests(ctx, tree, file); err == nil { // else those of before
			if subjects, err := g.pick(tree, known, file, args); err == nil {
				_ = o.follow(subjects, known) // one that ended just now is left out
			}
		}
	}
}

// clearScreen is what takes a terminal back to its top; "" where nobody looks.
func clearScreen(w io.Writer) string {
	if !terminal(w) {
		return ""
	}
	return "\x1b[H\x1b[2J"
}

// window measures once. It ends early, with what there is, when the context does.
func (o *observer) window(ctx context.Context, length time.Duration) (report.Diagnosis, error) {
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
		Overhead: less(after, before, elapsed, len(o.online))}
	d.Containers, err = o.describe()
	return d, err
}

// watch reads slice by slice.
func (o *observer) watch(ctx context.Context, begin time.Time, length time.Duration) error {
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
			o.lookAround()
		}
	}
	return nil
}

// notes are what this kernel cannot tell, and what was lost.
func (o *observer) notes() []string {
	list := []string{}
	irq, steal := o.probe.Tells()
	if !irq {
		list = append(list, "this kernel does not take interrupts off the time of threads (CONFIG_IRQ_TIME_ACCOUNTING): they are part of who ran")
	}
	if !steal {
		list = append(list, "this kernel does not take stolen time off the time of threads (CONFIG_PARAVIRT_TIME_ACCOUNTING): it is part of who ran")
	}
	if tasks, pairs := o.probe.Lost(); tasks > 0 || pairs > 0 {
		list = append(list, fmt.Sprintf("there was no room for %d threads, and for the names of %d waits", tasks, pairs))
	}
	if n := o.probe.Missed(); n > 0 {
		list = append(list, fmt.Sprintf("the kernel did not tell of %d switches: who ran then counts as who ran before", n))
	}
	if o.crowded {
		list = append(list, "there are more groups than can be told apart: some go by the name of the group above them")
	}
	return list
}

// requests are the containers of this node with what they have reserved: as the agent knows it, else by the file.
func (g *globals) requests(ctx context.Context, tree *cgroup.Tree, file *config.File) ([]report.Container, error) {
	list, err := containers(tree, file)
	if err != nil {
		return nil, err
	}
	agents := map[string]report.Container{}
	short, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if s, err := g.client().Status(short); err == nil { // else there is no agent: the node itself has been asked
		for _, c := range s.Containers {
			agents[c.Cgroup] = c
		}
	}
	for i := range list {
		if a, there := agents[list[i].Cgroup]; there {
			list[i].Name, list[i].Request = a.Name, cmp.Or(list[i].Request, a.Request)
		}
	}
	return list, nil
}

// pick chooses who is diagnosed.
func (g *globals) pick(tree *cgroup.Tree, known []report.Container, file *config.File, args []string) ([]report.Container, error) {
	if len(args) == 0 {
		if len(known) == 0 {
			return nil, withHint(errors.New("no container is found on this node"), "name control groups: `plimsoll diagnose '/lab/*'`")
		}
		return known, nil
	}
	var list []report.Container
	for _, arg := range args {
		found, err := g.match(tree, known, file, arg)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			if !slices.ContainsFunc(list, func(o report.Container) bool { return o.Cgroup == c.Cgroup }) {
				list = append(list, c)
			}
		}
	}
	return list, nil
}

// match are the containers and groups that an argument means.
func (g *globals) match(tree *cgroup.Tree, known []report.Container, file *config.File, arg string) ([]report.Container, error) {
	plain := func(group string) report.Container {
		return report.Container{Cgroup: group, Name: group, Request: file.Resolve(group).Request}
	}
	if strings.ContainsAny(arg, "*?[") {
		list, err := matching(tree, known, arg, plain)
		if err == nil && len(list) == 0 {
			err = withHint(fmt.Errorf("nothing is called like %q", arg), "a star stands for one part of a path, not for a slash")
		}
		return list, err
	}
	group := path.Clean("/" + g.container(arg))
	if c, err := report.Find(known, group); err == nil {
		return []report.Container{c}, nil
	}
	if _, err := tree.Inode(group); err == nil && strings.HasPrefix(arg, "/") {
		return []report.Container{plain(group)}, nil
	}
	c, err := report.Find(known, arg)
	if err != nil {
		return nil, withHint(err, "name a container of this node, or the path of a control group, such as /lab/web")
	}
	return []report.Container{c}, nil
}

// matching are containers by name or path, and other groups by path.
func matching(tree *cgroup.Tree, known []report.Container, glob string, plain func(string) report.Container) ([]report.Container, error) {
	if _, err := path.Match(glob, ""); err != nil {
		return nil, fmt.Errorf("%q: %w", glob, err)
	}
	hit := func(name string) bool { ok, _ := path.Match(glob, name); return ok } // the syntax is good
	var list []report.Container
	for _, c := range known {
		if hit(c.Name) || hit(c.Cgroup) {
			list = append(list, c)
		}
	}
	if !strings.HasPrefix(glob, "/") {
		return list, nil
	}
	var walk func(group string) error
	walk = func(group string) error {
		children, err := tree.Children(group)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, c := range children {
			if hit(c) && !slices.ContainsFunc(list, func(o report.Container) bool { return o.Cgroup == c }) {
				list = append(list, plain(c))
			}
			if err := walk(c); err != nil {
				return err
			}
		}
		return err
	}
	return list, walk("/")
}
