package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"plimsoll/internal/agent"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cluster"
	"plimsoll/internal/config"
	"plimsoll/internal/config/follow"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/doctor"
	"plimsoll/internal/doctor/features"
	"plimsoll/internal/flight/recorder"
	"plimsoll/internal/host"
	"plimsoll/internal/killswitch"
	"plimsoll/internal/logqueue"
	"plimsoll/internal/node"
	"plimsoll/internal/pauses"
	"plimsoll/internal/policy"
	"plimsoll/internal/preempt"
	"plimsoll/internal/probe"
	"plimsoll/internal/report"
	"plimsoll/internal/schedext/loader"
	"plimsoll/internal/services"
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
	loaded    follow.Stamp // of the configuration file
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

func (f *runFlags) register(cmd *cobra.Command, more string) {
	flags := cmd.Flags()
	flags.StringVar(&f.file, "config", "", "configuration file (docs/CONFIG.md)"+more)
	flags.StringVar(&f.policy, "policy", "", "without a file: none, cpuBurstOnly, cfsQuotaBurstOnly or auto")
	flags.StringArrayVar(&f.include, "include", nil,
		"without a file: glob of control groups to look after, such as '/lab/*' (repeatable)")
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
				return withHint(misusef("--check-config: no configuration file is given"),
					"plimsoll run --check-config --config /etc/plimsoll/config.yaml")
			}
			f.loaded = follow.Of(f.file) // before it is read: a change in between is taken up
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
			preempt.AddProcessors()
			queue := logqueue.New()
			defer queue.End()
			return run(ctx, g, f, file, log, queue)
		},
	}
	f.register(cmd, "; reloaded when it changes")
	cmd.Flags().StringVar(&f.listen, "listen", web.DefaultListen,
		`address of metrics, health and status, of a process without privileges that run starts ("plimsoll serve"); "" for none`)
	cmd.Flags().StringVar(&f.metrics, "metrics", string(report.Basic), metricsHelp)
	cmd.Flags().BoolVar(&f.checkOnly, "check-config", false, "check the file of --config, list all errors, and exit")
	cmd.Flags().BoolVar(&f.polls, "poll", false, "poll for throttles even where the kernel has throttle events (eBPF)")
	cmd.Flags().BoolVar(&f.ahead, "ahead", true, "refill before a throttle begins, where it can be foreseen")
	cmd.Flags().BoolVar(&f.waits, "waits", false, "measure what containers wait for, at each context switch (eBPF)")
	cmd.Flags().BoolVar(&f.requests, "requests", false,
		"measure how long containers take to answer the requests at their TCP sockets (eBPF, tested from 6.12 on)")
	cmd.Flags().BoolVar(&f.realtime, "realtime", true,
		"answer throttles on a thread of real-time priority, where that is permitted")
	cmd.Flags().BoolVar(&f.standBy, "stand-by", false,
		"where another agent runs, wait for its end and take over what it has written")
	f.kube.register(cmd)
	f.flight.register(cmd.Flags())
	cmd.Flags().StringVar(&f.read.Socket, "read-socket", "",
		"socket from which the state is read; read.sock in the state directory")
	cmd.Flags().StringVar(&f.readGroup, "read-group", "", "group that may read from that socket, by name or number; "+
		"without one, only root and the process that --listen starts")
	f.logFlags.register(cmd.Flags(), "log every write")
	return cmd
}

// check checks the flags, before the agent takes over from one that works.
func (f *runFlags) check(g *globals) error {
	_, err := parseDetail(f.metrics)
	return errors.Join(err, f.flight.check(), f.resolveRead(g))
}

// run is the agent's life: it restores what a dead agent left behind, or takes over from a live one; then
// turns are taken until the context ends.
func run(ctx context.Context, g *globals, f *runFlags, file *config.File, log *slog.Logger, to *logqueue.Queue) error {
	if err := f.check(g); err != nil {
		return err
	}
	n, err := g.Find()
	if err != nil {
		return err
	}
	defer n.Close()
	found, err := cgroupfs.OfHost(n.Tree, g.CgroupRoot, file, log)
	if err != nil {
		return err
	}
	log, lines := agentLog(log, to, found)
	k, err := f.kube.open(n.Tree, found, file, log)
	if err != nil {
		return err
	}
	c := services.New(ctx, log)
	defer c.Stop()
	c.Start("discovery", found.Run)
	c.Start("kubernetes", k.Run)
	c.Start("log", lines.serve)
	passed, err := f.takeOver(c.Agent, g, n, k, log)
	if err == nil {
		err = n.OpenJournal()
	}
	if err != nil {
		return c.End(notCanceled(err))
	}
	left := n.PutBackLeft(passed, log)
	named := &selection{Scanner: found}
	named.take(file, log)
	begun := false
	defer func() {
		if !begun { // no other process would
			n.PutBackLeft(false, log)
		}
	}()
	throttles := f.subscribe(log)
	a, err := newAgent(g, n.Dir, n.Tree, k.Over(found), file, throttles, log)
	if err != nil {
		return c.End(err)
	}
	recorded := periodsOf(throttles, k.Over(found))
	recorded.Watch = f.watchAll(a)
	giveWriter(a, n, recorded, log)
	if err := n.Inherit(c.Agent, a, passed, left, log); err != nil {
		return c.End(err)
	}
	heart := g.heart(n.Lock, log)
	defer heart.Close()
	a.Beat = heart.Beat
	k.Serve(a)
	r := reporter{Agent: a, cluster: k, named: named, lines: lines, resizes: f.kube.nri.open(f.kube.on, a, log),
		meters: f.openMeters(n.Tree, k.Over(found), throttles, log), unseen: features.Sight(n.Tree, log),
		tidy: time.AfterFunc(slim.TidyAfter, slim.Tidy), flags: g.flags(), installation: f.kube.installation}
	r.flight, r.receipts = f.flight.newRecorder(g, recorded, a.Containers, r.meters, log), g.openReceipts(n, a, log)
	address, err := f.listenFor(c, g, r, g.dryRun(a, n.Journal.Entries), recorded)
	if err != nil {
		return c.End(err)
	}
	log.Info("running", "version", version, "cgroup", n.Tree.Version().String(), "listen", address, "policy",
		file.Node().Policy)
	f.startBeside(c, r, log)
	begun = true
	slim.Start()
	ready(log)
	return c.End(a.Run(c.Agent))
}

// giveWriter gives an agent the node's writer.
func giveWriter(a *agent.Agent, n *node.Node, recorded *recorder.Periods, log *slog.Logger) {
	for _, note := range n.Notes() {
		log.Warn(note)
	}
	n.Writer.Tasks, a.Writer, a.Successor = a.Tasks, noted{n.Writer, recorded}, n.Successor(log)
	if err := n.WatchQuotas(); err != nil {
		log.Warn("owners' writes that a refill undoes are seen only where the limit is declared", "error", err)
		return
	}
	a.Undone, a.Refillable = n.Writer.Undone, n.Writer.ExpectRefills
}

// startBeside starts what works beside an agent that is about to take its first turn.
func (f *runFlags) startBeside(c *services.Group, r reporter, log *slog.Logger) {
	c.Start("waits", r.meters.Waits.Run)
	c.Start("requests", r.meters.Requests.Run)
	c.Start("nri", r.resizes.Run)
	c.Start("record", r.flight.Run)
	c.Start("receipts", r.receipts.Run)
	c.Start("configuration", func(ctx context.Context) error {
		return f.follow(ctx, r.Turns(), f.loaded, configure(r.Agent, r.named, r.cluster, log))
	})
}

// subscribe loads the programs that report throttles, unless --poll was given.
func (f *runFlags) subscribe(log *slog.Logger) host.Throttles {
	if f.polls {
		return host.Throttles{Why: "--poll was given"}
	}
	return host.Subscribe(probe.Options{Realtime: f.realtime, Use: true, Ahead: f.ahead}, log)
}

// listenFor opens the agent's sockets, and starts the process that serves the network, whose address it returns.
func (f *runFlags) listenFor(c *services.Group, g *globals, r reporter, plan web.DryRun,
	recorded web.Periods) (address string, err error) {
	server, err := web.Listen(r, web.Options{Control: filepath.Join(g.StateDir, web.ControlSocket), Read: f.read,
		Now: time.Now, Log: c.Log, Plan: plan, Periods: recorded})
	if err != nil {
		return "", err
	}
	c.Start("sockets", server.Serve)
	network, address, err := startChild(f.listen, f.metrics, f.read, c.Log)
	if err == nil {
		c.Start("network", network.run)
	}
	return address, err
}

// takeOver takes the lock, with --stand-by when the agent that has it ends.
func (f *runFlags) takeOver(ctx context.Context, g *globals, n *node.Node, k *cluster.Cluster,
	log *slog.Logger) (passed bool, err error) {
	n.Installation = f.kube.installation
	if !f.standBy {
		return false, n.TakeLock()
	}
	return n.StandBy(ctx, f.read, k.Ready, log)
}

// ready notifies the service manager that started the agent that it manages its containers (sd_notify(3)); without one
// it does nothing.
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
	source host.Throttles, log *slog.Logger) (*agent.Agent, error) {
	pauses, err := pauses.Load(g.StateDir)
	if err != nil {
		return nil, err
	}
	machine := sysfs.NewHost("/")
	kernel, err := machine.Release()
	if err != nil {
		return nil, err
	}
	can, tasks := kernelFeatures(dir, source.Events != nil), &task.Kernel{}
	switch f := can.Get(cgroup.FeatureRefill); {
	case source.Events == nil || !can.Has(cgroup.FeatureBurst):
	case !doctor.Refills(can):
		log.Warn("throttles are answered by raised quotas, not by refills, also in the starts of containers", "why",
			f.Detail)
	case f.State == cgroup.Unknown:
		log.Info("could not test whether rewriting the burst refills the group; assuming that it does", "why", f.Detail)
	}
	o := agent.Options{
		Tree: tree, Discover: found, Host: host.Host{Host: machine, Tree: tree}, Pauses: pauses, Clock: time.Now,
		Log:    log,
		Switch: killswitch.In(g.StateDir), Rules: rules(can, tree),
		Machine: doctor.Priorities(can, tasks), Schedulers: &loader.Schedulers{}, Overruled: loader.Overruled,
		Tasks:   tasks,
		Polling: source.Why, Missing: source.Missing, Uncounted: source.WhyNoPeriods(),
		Strategy: file.Node(), Seed: rand.Uint64(), Version: version, Kernel: kernel, Reserving: reserving(file),
	}
	if source.Events != nil {
		o.Events = source.Events
	}
	return agent.New(o), nil
}

// kernelFeatures are what this kernel can do. Whether a rewrite refills takes a fifth of a second to find out, and
// matters only to an agent with throttle events.
func kernelFeatures(dir *cgroup.Dir, subscribed bool) cgroup.Features {
	host := thisHost()
	host.Quick = !subscribed
	return cgroup.Probe(dir, host)
}

// rules are what the policy must know of this kernel. Where it was not possible to try a refill, as on a machine too
// busy for that, it is taken for what each mainline kernel with the burst does (tg_set_cfs_bandwidth, since 5.14).
func rules(found cgroup.Features, tree *cgroup.Tree) policy.Rules {
	return policy.Rules{
		Burst:           found.Has(cgroup.FeatureBurst),
		BurstAboveQuota: found.Has(cgroup.FeatureAboveQuota),
		Nested:          tree.Version() == cgroup.V1,
		Refill:          doctor.Refills(found),
	}
}

// configure passes a new configuration to the scanner and to the agent.
func configure(a *agent.Agent, named *selection, k *cluster.Cluster, log *slog.Logger) func(*config.File, error) {
	return func(file *config.File, err error) {
		k.Note(err)
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
		k.Configure(a, file)
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
