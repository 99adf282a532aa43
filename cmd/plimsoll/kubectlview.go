package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/discover/kube"
	"plimsoll/internal/discover/kube/fanout"
	"plimsoll/internal/report"
	"plimsoll/internal/top"
	"plimsoll/internal/top/screen"
	"plimsoll/internal/view"
)

// clusterSource reads the agents of a cluster, each through a port that the API server forwards.
type clusterSource struct {
	cluster *kube.Cluster
	pods    []kube.AgentPod

	mu       sync.Mutex
	trackers map[string]*view.Tracker // by node
	answered map[string]string        // the agent's pod, by node
	views    map[string]view.View     // the latest, by node
	silent   []string                 // nodes that gave no answer last
}

// View merges what the nodes say. A node without an answer is a problem of the view, unless there is no other.
func (s *clusterSource) View(ctx context.Context) (view.View, map[string]string, error) {
	answers := fanout.All[report.Status](ctx, s.pods,
		func(ctx context.Context, a kube.AgentPod) ([]byte, error) { return page("status")(ctx, s.cluster, a) })
	s.mu.Lock()
	defer s.mu.Unlock()
	var views []view.View
	clear(s.views)
	s.silent = report.NewCluster(answers).Silent()
	for _, a := range answers {
		if a.Answer == nil {
			continue
		}
		c := s.trackers[a.Node]
		if c == nil {
			c = &view.Tracker{Node: a.Node}
			s.trackers[a.Node] = c
		}
		v := c.Add(*a.Answer, nil, nil)
		views, s.views[a.Node], s.answered[a.Node] = append(views, v), v, a.Pod
	}
	if len(views) == 0 {
		return view.View{}, nil, namingSilent(nil, s.silent)
	}
	v, nodes := top.Merge(views)
	v.Problems = slices.Concat(s.silent, v.Problems)
	return v, nodes, nil
}

// Periods are not asked for: a port that is forwarded is too slow for them.
func (s *clusterSource) Periods(string) (view.Periods, error) {
	return view.Periods{}, errors.New("the periods are shown on the node: plimsoll top")
}

// on is the latest view of a node, and what runs the program of its agent, for what this plugin has no command for.
func (s *clusterSource) on(node string) (v view.View, program string) {
	for _, a := range s.pods {
		if a.Node == node && a.Name == s.answered[node] {
			return s.views[node], "kubectl -n " + a.Namespace + " exec " + a.Name + " -- " + agentProgram
		}
	}
	return s.views[node], "plimsoll"
}

// source reaches the agents.
func (p *plugin) source(cmd *cobra.Command) (*clusterSource, error) {
	cluster, pods, err := p.agents(cmd)
	if err != nil {
		return nil, err
	}
	return &clusterSource{cluster: cluster, pods: pods, trackers: map[string]*view.Tracker{},
		answered: map[string]string{}, views: map[string]view.View{}}, nil
}

func (p *plugin) topCommand() *cobra.Command {
	f := &topFlags{}
	cmd := &cobra.Command{
		Use:     "top",
		Short:   "Show live who stands still on any node, for how long, and why",
		Example: "  kubectl plimsoll top\n  kubectl plimsoll top --once --node worker-1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := p.source(cmd)
			if err != nil {
				return err
			}
			err = f.show(cmd, s, screen.Options{Every: 2 * time.Second, Wait: fanout.NodeTimeout})
			if f.once {
				err = namingSilent(err, s.silent)
			}
			return err
		},
	}
	f.register(cmd)
	return cmd
}

func (p *plugin) whyCommand() *cobra.Command {
	f := &whyFlags{}
	cmd := &cobra.Command{
		Use:     "why POD",
		Short:   "Say in a paragraph why a pod stands still, what was done about it, and what to do",
		Example: "  kubectl plimsoll why default/web",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := p.source(cmd)
			if err != nil {
				return err
			}
			err = f.explain(cmd, s, args[0], "kubectl plimsoll diagnose", s.on)
			return namingSilent(err, s.silent)
		},
	}
	f.register(cmd)
	return cmd
}

// diagnoseCommand measures on the nodes that have the pod. The agent's container does the work.
func (p *plugin) diagnoseCommand() *cobra.Command {
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "diagnose POD",
		Short: "Measure on its node what keeps the threads of a pod from a CPU",
		Long: "Measure on its node what keeps the threads of a pod from a CPU. POD is a pod or container as in " +
			"`kubectl plimsoll status`. It takes the right to pods/exec.",
		Example: "  kubectl plimsoll diagnose default/web --for 30s",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkWindow(length); err != nil {
				return err
			}
			s, err := p.source(cmd)
			if err != nil {
				return err
			}
			ctx, cancel := within(cmd, fanout.NodeTimeout)
			defer cancel()
			names, pods, err := s.have(ctx, args[0])
			if err != nil {
				return err
			}
			return namingSilent(askThese[report.Diagnosis](cmd, p, s.cluster, pods, length+fanout.NodeTimeout,
				func(ctx context.Context, c *kube.Cluster, a kube.AgentPod) ([]byte, error) {
					return c.Exec(ctx, a, append([]string{agentProgram, "diagnose", "--json", "--for", length.String()},
						names[a.Name]...)...)
				}), s.silent)
		},
	}
	cmd.Flags().DurationVar(&length, "for", 10*time.Second, "how long to measure")
	return cmd
}

// have are the containers that a person means, by the agent's pod that answered, and these pods. A pod may answer that
// is not ready.
func (s *clusterSource) have(ctx context.Context, arg string) (map[string][]string, []kube.AgentPod, error) {
	answers, err := report.Having(fanout.All[report.Status](ctx, s.pods,
		func(ctx context.Context, a kube.AgentPod) ([]byte, error) { return page("status")(ctx, s.cluster, a) }), arg)
	s.silent = report.NewCluster(answers).Silent()
	names := map[string][]string{}
	for _, a := range answers {
		if a.Answer == nil {
			continue
		}
		for _, c := range a.Answer.Containers {
			if c.Level != "pod" {
				names[a.Pod] = append(names[a.Pod], c.Cgroup)
			}
		}
	}
	if len(names) == 0 {
		if len(s.silent) < len(answers) { // a pod without containers
			err = &report.UnknownError{Arg: arg}
		}
		return nil, nil, namingSilent(err, s.silent)
	}
	pods := slices.DeleteFunc(slices.Clone(s.pods), func(a kube.AgentPod) bool { return len(names[a.Name]) == 0 })
	return names, pods, nil
}
