package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"plimsoll/internal/agent"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/config/follow"
	"plimsoll/internal/doctor"
	"plimsoll/internal/doctor/features"
	"plimsoll/internal/host"
	"plimsoll/internal/killswitch"
	"plimsoll/internal/logqueue"
	"plimsoll/internal/pauses"
	"plimsoll/internal/plan"
	"plimsoll/internal/printable"
	"plimsoll/internal/report"
	"plimsoll/internal/schedext/loader"
	"plimsoll/internal/slim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/task"
	"plimsoll/internal/web"
)

// runFlags are the flags of run and plan.
type runFlags struct {
	source
	logFlags
	listen    string
	metrics   string
	read      web.ReadAccess
	readGroup string
	checkOnly bool
	polls     bool
	realtime  bool
	ahead     bool
	standBy   bool
	waits     bool
	requests  bool
	flight    flightFlags
	kube      kubeFlags
}

func (f *runFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.file, "config", "", "configuration file (docs/CONFIG.md); reloaded when it changes")
	flags.StringVar(&f.policy, "policy", "", "without a file: none, cpuBurstOnly, cfsQuotaBurstOnly or auto")
	flags.StringArrayVar(&f.include, "include", nil, "without a file: glob of control groups to look after, such as '/lab/*' (repeatable)")
}

func runCommand(g *globals) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Look after the containers of this node until stopped, then put everything back",
		Long: `Look after the containers of this node until stopped (SIGTERM, SIGINT, the end of its terminal), then put everything back.
Where its input is no terminal SIGHUP has it read the configuration file again.

Containers of Kubernetes, Docker, containerd, CRI-O and Podman are found by themselves; systemd units and plain groups are
looked after when the configuration, or --include, names them. The default policy is none: nothing is written.`,
		Example: `  plimsoll run --policy auto --include '/lab/*'
  plimsoll run --config /etc/plimsoll/config.yaml
  plimsoll run --config new.yaml --check-config
  plimsoll run --kube --node-name "$NODE_NAME"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.checkOnly && f.file == "" {
				return withHint(misusef("--check-config: no configuration file is given"), "plimsoll run --check-config --config /etc/plimsoll/config.yaml")
			}
			loaded := follow.Of(f.file) // before it is read: a change in between is taken up
			file, err := f.load()
			if err != nil {
				return err
			}
			if f.checkOnly {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: the configuration is good\n", report.Printable(f.file))
				return nil
			}
			f.logFlags.flags = g.flags()
			log, err := f.logger(os.Stderr)
			if err != nil {
				return err
			}
			outliveReaders()
			ctx, rereads, stop := asDaemon(cmd, os.Stdin)
			defer stop()
			f.rereads = rereads
			addProcessors()
			queue := logqueue.New()
			defer queue.End()
			return run(ctx, g, f, file, loaded, log, queue)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.listen, "listen", web.DefaultListen, `address of metrics, health and status, of a process without privileges that run starts ("plimsoll serve"); "" for none`)
	cmd.Flags().StringVar(&f.metrics, "metrics", string(report.Basic), metricsHelp)
	cmd.Flags().BoolVar(&f.checkOnly, "check-config", false, "check the file of --config, list all errors, and exit")
	cmd.Flags().BoolVar(&f.polls, "poll", false, "poll for throttles even where the kernel has throttle events (eBPF)")
	cmd.Flags().BoolVar(&f.ahead, "ahead", true, "refill before a throttle begins, where it can be foreseen")
	cmd.Flags().BoolVar(&f.waits, "waits", false, "measure what containers wait for, at each context switch (eBPF)")
	cmd.Flags().BoolVar(&f.requests, "requests", false, "measure how long containers take to answer the requests at their TCP sockets (eBPF, tested from 6.12 on)")
	cmd.Flags().BoolVar(&f.realtime, "realtime", true, "answer throttles on a thread of real-time priority, where that is permitted")
	cmd.Flags().BoolVar(&f.standBy, "stand-by", false, "where another agent runs, wait for its end and take over what it has written")
	f.kube.register(cmd)
	f.flight.register(cmd.Flags())
	cmd.Flags().StringVar(&f.read.Socket, "read-socket", "", "socket from which the state is read; read.sock in the state directory")
	cmd.Flags().StringVar(&f.readGroup, "read-group", "", "group that may read from that socket, by name or number; without one, only root and the process that --listen starts")
	f.logFlags.register(cmd.Flags())
	return cmd
}

// logFlags are those of a command that runs until it is stopped.
type logFlags struct {
	verbose bool
	format  string
	flags   string // for the commands that it names
}

// called gives the commands in a message or a hint their flags.
func (f *logFlags) called(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindString {
		a.Value = slog.StringValue(report.Called(a.Value.String(), f.flags))
	}
	return a
}

func (f *logFlags) register(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log every write")
	flags.StringVar(&f.format, "log-format", "text", "format of the log on standard error: text or json")
}

// logger writes lines for people, or objects for log collectors.
func (f *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if f.flags != "" {
		o.ReplaceAttr = f.called
	}
	if f.verbose {
		o.Level = slog.LevelDebug
	}
	switch f.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(printable.JSON(w), o)), nil
	}
	return nil, withHint(misusef("--log-format %q is not known", f.format), "text, json")
}

// run is the agent's life: it restores what a dead agent left behind, or takes over from a live one; then
// turns are taken until the context ends.
func run(ctx context.Context, g *globals, f *runFlags, file *config.File, loaded follow.Stamp, log *slog.Logger, queue *logqueue.Queue) error {
	if err := errors.Join(f.flight.check(), f.resolveRead(g)); err != nil {
		return err
	}
	m, err := g.findMachine()
	if err != nil {
		return err
	}
	defer m.close()
	found, err := scanner(m.tree, g.cgroupRoot, file, log)
	if err != nil {
		return err
	}
	log, lines := agentLog(log, queue, found)
	cluster, err := f.kube.open(m.tree, found, file, log)
	if err != nil {
		return err
	}
	c := newServices(ctx, log)
	defer c.stop()
	c.start(service{"discovery", found.Run}, service{"kubernetes", cluster.run}, service{"log", lines.serve})
	passed, err := f.takeOver(c.ctx, g, m, cluster, log)
	if err == nil {
		err = m.open(g)
	}
	if err != nil {
		return c.end(notCanceled(err))
	}
	m.warnOfStrangers(log)
	left := m.putBackLeft(passed, log)
	named := &selection{Scanner: found}
	named.take(file, log)
	begun := false
	defer func() {
		if !begun { // no other process would
			recovered(log, m.writer.Restore(nil, false))
		}
	}()
	throttles := f.subscribe(log)
	a, err := newAgent(g, m.dir, m.tree, cluster.over(found), file, throttles, log)
	if err != nil {
		return c.end(err)
	}
	recorded := throttles.periods(cluster.over(found))
	recorded.Watch = f.watchAll(a)
	m.writer.Tasks, a.Writer, a.Successor = a.Tasks, noted{m.writer, recorded}, g.successor(log)
	m.watchQuotas(a, log)
	if err := m.inherit(c.ctx, g, a, passed, left, log); err != nil {
		return c.end(err)
	}
	heart := g.heart(log)
	defer heart.Close()
	a.Beat = heart.Beat
	cluster.serve(a)
	resizes, measured := f.kube.nri.open(f.kube.on, a, log), f.openMeters(m.tree, cluster.over(found), throttles, log)
	r := reporter{a, cluster, resizes, features.Sight(m.tree, log), named, measured, time.AfterFunc(slim.TidyAfter, slim.Tidy), lines,
		f.flight.newRecorder(g, recorded, a.Containers, measured, log), g.openReceipts(m, a, log), g.flags()}
	address, err := f.listenFor(c, g, r, g.dryRun(a, m.journal.Entries), recorded)
	if err != nil {
		return c.end(err)
	}
	log.Info("running", "version", version, "cgroup", m.tree.Version().String(), "listen", address, "policy", file.Node().Policy)
	c.start(append(measured.services(), service{"nri", serveNRI(resizes)}, service{"record", r.flight.Run}, service{"receipts", r.receipts.Run}, service{"configuration", func(ctx context.Context) error {
		return f.follow(ctx, a.Turns(), loaded, configure(a, named, cluster, log))
	}})...)
	begun = true
	slim.Start()
	ready(log)
	return c.end(a.Run(c.ctx))
}

// listenFor opens the agent's sockets, and starts the process that serves the network, whose address it returns.
func (f *runFlags) listenFor(c *services, g *globals, r reporter, plan web.DryRun, recorded web.Periods) (address string, err error) {
	if _, err := report.ParseDetail(f.metrics); err != nil {
		return "", withHint(misusef("--metrics: %v", err), metricsHelp)
	}
	server, err := web.Listen(r, web.Options{Control: filepath.Join(g.stateDir, web.ControlSocket), Read: f.read, Now: time.Now,
		Log: c.log, Plan: plan, Periods: recorded})
	if err != nil {
		return "", err
	}
	c.start(service{"sockets", server.Serve})
	network, address, err := startChild(f.listen, f.metrics, f.read, c.log)
	if err == nil {
		c.start(service{"network", network.run})
	}
	return address, err
}

// takeOver takes the lock, with --stand-by when the agent that has it ends.
func (f *runFlags) takeOver(ctx context.Context, g *globals, m *machine, k *cluster, log *slog.Logger) (passed bool, err error) {
	if !f.standBy {
		return false, m.takeLock(g)
	}
	return m.standBy(ctx, g, f.read, k.ready, log)
}

// ready notifies the service manager that started the agent that it manages its containers (sd_notify(3)); without one it
// does nothing.
func ready(log *slog.Logger) {
	if _, err := systemd.SdNotify(false, systemd.SdNotifyReady); err != nil {
		log.Warn("could not notify the service manager that the agent is ready", "error", err)
	}
}

// notCanceled is no error where it only says that the agent was stopped.
func notCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// newAgent makes an agent on a tree; its writer is the caller's to set.
func newAgent(g *globals, dir *cgroup.Dir, tree *cgroup.Tree, found agent.Discoverer, file *config.File,
	source throttleSource, log *slog.Logger) (*agent.Agent, error) {
	pauses, err := pauses.Load(g.stateDir)
	if err != nil {
		return nil, err
	}
	machine := sysfs.NewHost("/")
	kernel, err := machine.Release()
	if err != nil {
		return nil, err
	}
	can, tasks := kernelFeatures(dir, source.events != nil), &task.Kernel{}
	switch f := can.Get(cgroup.FeatureRefill); {
	case source.events == nil || !can.Has(cgroup.FeatureBurst):
	case !doctor.Refills(can):
		log.Warn("throttles are answered by raised quotas, not by refills, also in the starts of containers", "why", f.Detail)
	case f.State == cgroup.Unknown:
		log.Info("could not test whether rewriting the burst refills the group; assuming that it does", "why", f.Detail)
	}
	return agent.New(agent.Options{
		Tree: tree, Discover: found, Host: host.Host{Host: machine, Tree: tree}, Pauses: pauses, Clock: time.Now, Log: log,
		Switch: killswitch.In(g.stateDir), Rules: rules(can, tree),
		Machine: doctor.Priorities(can, tasks), Schedulers: &loader.Schedulers{}, Overruled: loader.Overruled, Tasks: tasks,
		Events: source.events, Polling: source.why, Missing: source.missing, Uncounted: source.uncounted,
		Strategy: file.Node(), Seed: rand.Uint64(), Version: version, Kernel: kernel, Reserving: reserving(file),
	}), nil
}

// configure passes a new configuration to the scanner and to the agent.
func configure(a *agent.Agent, named *selection, cluster *cluster, log *slog.Logger) func(*config.File, error) {
	return func(file *config.File, err error) {
		cluster.note(err)
		if err != nil {
			for _, one := range faults(err) {
				log.Error("the configuration is not good, the last good one stays in force", "error", one)
			}
			a.Configure(strategy.Node{}, err)
			return
		}
		log.Info("configuration loaded", "policy", file.Node().Policy)
		named.take(file, log)
		a.Reserve(file.Reserve())
		a.Configure(cluster.configure(file), nil)
	}
}

// faults are the errors of a configuration, one by one.
func faults(err error) []error {
	var all config.Errors
	if errors.As(err, &all) {
		return all.Unwrap()
	}
	return []error{err}
}

// recovered says what an agent that died left behind.
func recovered(log *slog.Logger, results []plan.Result) {
	for _, r := range results {
		log.Info("left behind by an agent that did not stop in order", "cgroup", r.Change.Cgroup.Path, "knob", r.Change.Knob,
			"outcome", r.Outcome, "in_force", r.InForce, "error", r.Err)
	}
}

// service runs beside the agent until its context ends.
type service struct {
	name string
	run  func(context.Context) error
}

// services run beside the agent. They outlive the agent's last turn, in which it puts everything back, and end after it. A
// service that fails ends the agent.
type services struct {
	ctx    context.Context // the agent's
	stop   context.CancelFunc
	beside context.Context // the services'
	leave  context.CancelFunc
	log    *slog.Logger
	group  errgroup.Group
}

func newServices(ctx context.Context, log *slog.Logger) *services {
	s := &services{log: log}
	s.ctx, s.stop = context.WithCancel(ctx)
	s.beside, s.leave = context.WithCancel(context.WithoutCancel(ctx))
	return s
}

func (s *services) start(list ...service) {
	for _, one := range list {
		s.group.Go(func() error {
			err := one.run(s.beside)
			if err != nil {
				err = fmt.Errorf("%s: %w", one.name, err)
				s.log.Error("a part of the agent failed", "error", err)
				s.stop()
			}
			return err
		})
	}
}

// end ends the services after the agent, and returns what went wrong first with any of them.
func (s *services) end(err error) error {
	s.leave()
	return errors.Join(err, s.group.Wait())
}
