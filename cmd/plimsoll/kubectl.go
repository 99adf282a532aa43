package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/discover/kube"
	"plimsoll/internal/discover/kube/fanout"
	"plimsoll/internal/progress"
	"plimsoll/internal/report"
	"plimsoll/internal/usage"
	"plimsoll/internal/web"
)

// pluginName is what kubectl calls for `kubectl plimsoll`: the same binary by another name.
const pluginName = "kubectl-plimsoll"

// asPlugin says whether the binary was called as kubectl's plugin.
func asPlugin(arg0 string) bool { return strings.HasPrefix(filepath.Base(arg0), pluginName) }

// plugin is what its commands have in common.
type plugin struct {
	kubeconfig, context string
	namespace, selector string
	node                string
	asJSON              bool
}

func newPlugin() *cobra.Command {
	p := &plugin{}
	root := &cobra.Command{
		Use:   pluginName,
		Short: "Ask the agents of a cluster, through ports that the API server forwards to their pods",
		Long: `Ask the agents of a cluster, through ports that the API server forwards to their pods. It needs what the chart's role
plimsoll-viewer permits: to list the pods of its namespace, and to create pods/portforward. plan and diagnose need pods/exec
too: they have the agents work.`,
		Example:       "  kubectl plimsoll top\n  kubectl plimsoll why default/web",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl plimsoll"},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&p.kubeconfig, "kubeconfig", "", "a kubeconfig file; without one, what kubectl uses")
	flags.StringVar(&p.context, "context", "", "the context of the kubeconfig to use")
	flags.StringVarP(&p.namespace, "namespace", "n", "plimsoll", "where the agents run")
	flags.StringVarP(&p.selector, "selector", "l", "app.kubernetes.io/name=plimsoll,app.kubernetes.io/component=agent",
		"the labels of their pods")
	flags.StringVar(&p.node, "node", "", "ask this node only")

	root.AddCommand(
		p.withJSON(&cobra.Command{Use: "status [NAME]", Short: "Show what is changed on each node",
			Args: cobra.MaximumNArgs(1),
			Long: "Show what is changed on each node. NAME is a container or pod, or a part of its name or path: " +
				"only what has it is shown.",
			Example: "  kubectl plimsoll status\n  kubectl plimsoll status default/web",
			RunE:    func(cmd *cobra.Command, args []string) error { return p.status(cmd, args) }}),
		p.withJSON(&cobra.Command{Use: "report",
			Short:   "Show per container of each node how much it was throttled, burst, and ran above its limit",
			Args:    cobra.NoArgs,
			Example: "  kubectl plimsoll report\n  kubectl plimsoll report --node worker-1 --json",
			RunE:    func(cmd *cobra.Command, _ []string) error { return ask[report.Report](cmd, p, page("report")) }}),
		p.topCommand(), p.whyCommand(), p.withJSON(p.diagnoseCommand()), p.withJSON(p.planCommand()))
	usage.Explain(root)
	return root
}

// withJSON adds --json to a command that has a JSON: top and why have none.
func (p *plugin) withJSON(cmd *cobra.Command) *cobra.Command {
	jsonFlag(cmd, &p.asJSON)
	return cmd
}

func (p *plugin) planCommand() *cobra.Command {
	var policy string
	var watch time.Duration
	cmd := &cobra.Command{
		Use:     "plan",
		Short:   "Show every change that the agents would make, were the policy this one, and write nothing",
		Example: "  kubectl plimsoll plan --policy auto --watch 10s",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkPlan(policy, watch); err != nil {
				return err
			}
			command := []string{agentProgram, "plan", "--of-agent", "--json", "--watch", watch.String()}
			if policy != "" {
				command = append(command, "--policy", policy)
			}
			return ask[report.Plan](cmd, p, func(ctx context.Context, c *kube.Cluster,
				a kube.AgentPod) ([]byte, error) {
				return c.Exec(ctx, a, command...)
			})
		},
	}
	cmd.Flags().StringVar(&policy, "policy", "", "the policy to try for all pods that may be burst: none, "+
		"cpuBurstOnly, cfsQuotaBurstOnly or auto; without it, what is configured")
	cmd.Flags().DurationVar(&watch, "watch", 2*time.Second,
		"how long to watch for throttling, at most "+web.MaxWatch.String())
	return cmd
}

// agentProgram is the program in the image, which has no shell and no PATH.
const agentProgram = "/plimsoll"

// question gets the answer of one agent.
type question func(context.Context, *kube.Cluster, kube.AgentPod) ([]byte, error)

// page asks for a page of the API.
func page(name string) question {
	return func(ctx context.Context, c *kube.Cluster, a kube.AgentPod) ([]byte, error) {
		return c.Ask(ctx, a, "/api/v1/"+name)
	}
}

// agents reaches the API server, and lists the pods of the agents.
func (p *plugin) agents(cmd *cobra.Command) (*kube.Cluster, []kube.AgentPod, error) {
	cluster, err := kube.Reach(p.kubeconfig, p.context, pluginName+"/"+version)
	if err != nil {
		return nil, nil, withHint(err, "--kubeconfig, or KUBECONFIG, says where the API server is")
	}
	listing, cancel := within(cmd, steerTimeout)
	defer cancel()
	pods, err := cluster.Agents(listing, p.namespace, p.selector, p.node)
	if err == nil && len(pods) == 0 {
		err = fmt.Errorf("no agent's pod in namespace %s has the labels %s", p.namespace, p.selector)
		err = exitError{withHint(err, "--namespace is that of the chart's release"), exitNoAgent}
	}
	return cluster, pods, err
}

// status shows all that the agents look after, or what has a name.
func (p *plugin) status(cmd *cobra.Command, name []string) error {
	cluster, pods, err := p.agents(cmd)
	if err != nil {
		return err
	}
	answers := answersOf[report.Status](cmd, cluster, pods, fanout.NodeTimeout, page("status"))
	if len(name) > 0 {
		if answers, err = report.Having(answers, name[0]); err != nil {
			return namingSilent(err, report.NewCluster(answers).Silent())
		}
	}
	return tell(cmd, p, answers)
}

// ask asks all agents, and shows what they say.
func ask[T report.Page](cmd *cobra.Command, p *plugin, q question) error {
	cluster, pods, err := p.agents(cmd)
	if err != nil {
		return err
	}
	return askThese[T](cmd, p, cluster, pods, fanout.NodeTimeout, q)
}

// askThese asks these agents, and shows what they say.
func askThese[T report.Page](cmd *cobra.Command, p *plugin, cluster *kube.Cluster, pods []kube.AgentPod,
	patience time.Duration, q question) error {
	return tell(cmd, p, answersOf[T](cmd, cluster, pods, patience, q))
}

func answersOf[T report.Page](cmd *cobra.Command, cluster *kube.Cluster, pods []kube.AgentPod, patience time.Duration,
	q question) []report.Answer[T] {
	bar := progress.For(bars(cmd), "asking", patience)
	defer bar.Stop()
	return fanout.Each[T](cmd.Context(), pods, patience, func(ctx context.Context, a kube.AgentPod) ([]byte, error) {
		return q(ctx, cluster, a)
	})
}

// tell shows what agents say. A node that says nothing is an error.
func tell[T report.Page](cmd *cobra.Command, p *plugin, answers []report.Answer[T]) error {
	all := report.NewCluster(answers)
	if err := show(cmd.OutOrStdout(), all, p.asJSON); err != nil {
		return err
	}
	if n := len(all.Silent()); n > 0 {
		return exitError{fmt.Errorf("%d of %d nodes gave no answer", n, len(all.Nodes)), exitNoAgent}
	}
	return nil
}

// namingSilent adds the nodes without an answer to the error of a command: what was not found may be on one of them.
func namingSilent(err error, silent []string) error {
	var unknown *report.UnknownError
	switch {
	case len(silent) == 0, err != nil && !errors.As(err, &unknown):
		return err
	case err == nil:
		err = errors.New(strings.Join(silent, "; "))
	default:
		err = fmt.Errorf("%w; %s", err, strings.Join(silent, "; "))
	}
	return exitError{err, exitNoAgent}
}
