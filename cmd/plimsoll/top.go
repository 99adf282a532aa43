package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/report"
	"plimsoll/internal/top"
	"plimsoll/internal/top/screen"
	"plimsoll/internal/view"
	"plimsoll/internal/web"
)

// topFlags are what a person may choose about the screen.
type topFlags struct{ once bool }

func (f *topFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.once, "once", false, "print one picture, made of two snapshots a second apart, and exit")
}

func topCommand(g *globals) *cobra.Command {
	f := &topFlags{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show live who stands still, for how long, why, and what was done about it",
		Long: `Show live who stands still at its limit, for how long in the last minute, why, and what was done about it, the worst
first. Enter shows the periods of a container, ? explains the columns, q quits. It needs no mouse and no colours
(NO_COLOR). It reads the agent as root, or as the group of the agent's --read-group.`,
		Example: `  plimsoll top
  plimsoll top --once`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := g.topSource()
			defer s.close()
			return f.show(cmd, s, screen.Options{})
		},
	}
	f.register(cmd)
	return cmd
}

// show shows a source until the person quits, or once.
func (f *topFlags) show(cmd *cobra.Command, s screen.Source, o screen.Options) error {
	ctx, stop := untilAsked(cmd)
	defer stop()
	if f.once {
		v, nodes, err := secondView(ctx, s, time.Second)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), top.New(report.Columns, 0).On(nodes).Seen(v).Once())
		return err
	}
	if !terminal(cmd.InOrStdin()) || !terminal(cmd.OutOrStdout()) {
		return withHint(misusef("the screen needs a terminal"), cmd.CommandPath()+" --once prints it")
	}
	o.In, o.Out, o.Source, o.Now = cmd.InOrStdin(), cmd.OutOrStdout(), s, time.Now
	o.Colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return screen.Run(ctx, o)
}

// secondView takes two snapshots, for most figures are differences.
func secondView(ctx context.Context, s screen.Source, apart time.Duration) (view.View, map[string]string, error) {
	if _, _, err := s.View(ctx); err != nil {
		return view.View{}, nil, err
	}
	select {
	case <-ctx.Done():
		return view.View{}, nil, ctx.Err()
	case <-time.After(apart):
	}
	return s.View(ctx)
}

// nodeSource follows the agent of this node. Where no program in the kernel records periods, it reads the files of one
// container.
type nodeSource struct {
	g     *globals
	agent *web.Client
	watch *web.Onlooker

	mu      sync.Mutex // guards what is below, and watch.Periods
	dir     *cgroup.Dir
	tree    *cgroup.Tree // nil: not found
	id      string
	sampler top.Sampler
}

func (g *globals) topSource() *nodeSource {
	host, err := os.Hostname()
	if err != nil {
		host = "this node"
	}
	agent := web.Dial(g.readSocket())
	s := &nodeSource{g: g, agent: agent, watch: web.Watch(agent, host, time.Now, slog.New(slog.DiscardHandler))}
	if dir, tree, err := g.OpenTree(); err == nil {
		s.dir, s.tree = dir, tree
	}
	return s
}

// readSocket is where the state is read. In the chart's pod the socket for readers is in another folder; the control
// socket answers root there, also beside the file that another agent left when it was killed.
func (g *globals) readSocket() string {
	name := filepath.Join(g.StateDir, web.ReadSocket)
	if control := filepath.Join(g.StateDir, web.ControlSocket); !served(name) && served(control) {
		return control
	}
	return name
}

// served says whether a process listens at a socket, also if this one may not connect to it.
func served(name string) bool {
	conn, err := net.DialTimeout("unix", name, time.Second)
	if err == nil {
		conn.Close()
	}
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED)
}

func (s *nodeSource) close() {
	s.watch.Close()
	if s.dir != nil {
		s.dir.Close()
	}
}

// View is the next one. Who fails to get it asks the agent directly, which says better why.
func (s *nodeSource) View(ctx context.Context) (view.View, map[string]string, error) {
	v, err := s.watch.View(ctx)
	if err == nil {
		return v, nil, nil
	}
	if _, direct := s.agent.Status(ctx); direct != nil {
		err = direct
	}
	return view.View{}, nil, s.g.elsewhere(err)
}

// Periods are those that ended since the call before.
func (s *nodeSource) Periods(id string) (view.Periods, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, recorded := s.watch.Periods(id); recorded {
		return p, nil
	}
	if s.tree == nil {
		return view.Periods{}, nil
	}
	if id != s.id {
		s.id, s.sampler = id, top.Sampler{}
	}
	c, err := s.tree.Stat(id)
	if err != nil {
		return view.Periods{}, err
	}
	if !c.HasUsage {
		if c.Usage, err = s.tree.Usage(id); err != nil {
			return view.Periods{}, err
		}
	}
	b, err := s.tree.Bandwidth(id)
	if err != nil {
		return view.Periods{}, err
	}
	return s.sampler.Add(time.Now(), c, b), nil
}
