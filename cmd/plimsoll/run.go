package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/agent"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/web"
)

// runFlags are the flags of run and plan.
type runFlags struct {
	source
	listen    string
	checkOnly bool
	verbose   bool
	polls     bool
	realtime  bool
	ahead     bool
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
		Long: `Look after the containers of this node until stopped by SIGTERM or SIGINT, then put everything back.

Containers of Kubernetes, Docker, containerd, CRI-O and Podman are found by themselves; systemd units and plain groups are
looked after when the configuration, or --include, names them. The default policy is none: nothing is written.`,
		Example: `  plimsoll run --policy auto --include '/lab/*'
  plimsoll run --config /etc/plimsoll/config.yaml
  plimsoll run --config new.yaml --check-config
  plimsoll run --kube --node-name "$NODE_NAME"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded := f.stamp() // before it is read: a change in between is taken up
			file, err := f.load()
			if err != nil {
				return err
			}
			if f.checkOnly {
				fmt.Fprintln(cmd.OutOrStdout(), "the configuration is good")
				return nil
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return run(ctx, g, f, file, loaded)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.listen, "listen", web.DefaultListen, `address of /metrics, /healthz and the status; "" for none`)
	cmd.Flags().BoolVar(&f.checkOnly, "check-config", false, "check the configuration and exit")
	cmd.Flags().BoolVar(&f.polls, "poll", false, "poll for throttles, though the kernel could tell of them (eBPF)")
	cmd.Flags().BoolVar(&f.ahead, "ahead", true, "refill before a throttle begins, where it can be foreseen")
	cmd.Flags().BoolVar(&f.realtime, "realtime", true, "answer throttles on a thread of real-time priority, where that is permitted")
	f.kube.register(cmd)
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "log every write")
	return cmd
}

func (f *runFlags) logger() *slog.Logger {
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// run is the agent's life: what a dead one left behind is put back, then turns are taken until the context ends.
func run(ctx context.Context, g *globals, f *runFlags, file *config.File, loaded stamp) error {
	log := f.logger()
	m, err := g.openMachine()
	if err != nil {
		return err
	}
	defer m.close()
	recovered(log, m.writer.Restore(nil, false))
	found, err := scanner(m.tree, g.cgroupRoot, file, log)
	if err != nil {
		return err
	}
	cluster, err := f.kube.open(m.tree, found, file, log)
	if err != nil {
		return err
	}
	a, err := newAgent(g, m.dir, m.tree, cluster.over(found), file, f.hear(log), log)
	if err != nil {
		return err
	}
	a.Writer = m.writer
	cluster.serve(a)
	resizes := f.kube.nri.open(f.kube.on, a, log)
	server, err := web.Listen(reporter{a, cluster, resizes}, web.Options{Listen: f.listen, Socket: filepath.Join(g.stateDir, web.SocketName), Now: time.Now, Log: log})
	if err != nil {
		return withHint(err, `is the address in use? --listen chooses another, --listen "" does without`)
	}
	log.Info("running", "version", version, "cgroup", m.tree.Version().String(), "listen", server.Addr(), "policy", file.Strategy().Policy)
	return live(ctx, a, log,
		service{"discovery", found.Run},
		service{"kubernetes", cluster.run},
		service{"nri", serveNRI(resizes)},
		service{"web", server.Serve},
		service{"configuration", func(ctx context.Context) error {
			return f.follow(ctx, loaded, configure(a, found, cluster, log))
		}})
}

// newAgent makes an agent on a tree; its writer is the caller's to set.
func newAgent(g *globals, dir *cgroup.Dir, tree *cgroup.Tree, found agent.Discoverer, file *config.File,
	hears hearing, log *slog.Logger) (*agent.Agent, error) {
	pauses, err := agent.LoadPauses(g.stateDir)
	if err != nil {
		return nil, err
	}
	kernel, err := release()
	if err != nil {
		return nil, err
	}
	can := features(dir, hears.ear != nil)
	return agent.New(agent.Options{
		Tree: tree, Discover: found, Host: host{sysfs.NewHost("/"), tree}, Pauses: pauses, Clock: time.Now, Log: log,
		Switch: killSwitch(filepath.Join(g.stateDir, holdFile)), Rules: rules(can, tree), Machine: priorities(can), Ear: hears.ear, Deaf: hears.why, Strategy: file.Strategy(),
		Version: version, Kernel: kernel,
	}), nil
}

// configure takes a new configuration to whom it concerns.
func configure(a *agent.Agent, found *cgroupfs.Scanner, cluster *cluster, log *slog.Logger) func(*config.File, error) {
	return func(file *config.File, err error) {
		cluster.note(err)
		if err != nil {
			log.Error("the configuration is not good, the last good one stays in force", "error", err)
			a.Configure(strategy.Strategy{}, err)
			return
		}
		log.Info("configuration loaded", "policy", file.Strategy().Policy)
		found.Configure(file)
		a.Configure(cluster.configure(file.Strategy()), nil)
	}
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

// live runs the agent and its services. The services outlive the agent's last turn, in which it puts everything
// back, and end after it. A service that fails ends the agent.
func live(ctx context.Context, a *agent.Agent, log *slog.Logger, services ...service) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	beside, end := context.WithCancel(context.WithoutCancel(ctx))
	failed := make(chan error, len(services))
	for _, s := range services {
		go func() {
			err := s.run(beside)
			if err != nil {
				err = fmt.Errorf("%s: %w", s.name, err)
				log.Error("a part of the agent failed", "error", err)
				stop()
			}
			failed <- err
		}()
	}
	errs := []error{a.Run(ctx)}
	end()
	for range services {
		errs = append(errs, <-failed)
	}
	return errors.Join(errs...)
}
