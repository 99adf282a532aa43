package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/agent"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/discover/kube"
	"plimsoll/internal/flight/recorder"
	"plimsoll/internal/nri"
	"plimsoll/internal/receipt/disk"
	"plimsoll/internal/report"
	"plimsoll/internal/slim"
	"plimsoll/internal/strategy"
)

// kubeFlags are those of run that concern Kubernetes.
type kubeFlags struct {
	on         bool
	kubeconfig string
	node       string
	configMaps []string
	nri        nriFlag
}

func (f *kubeFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.on, "kube", false, "read the pods of this node from Kubernetes: annotations, ConfigMaps, classes, limits (docs/CONFIG.md)")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "with --kube: a kubeconfig file; without one, the cluster in which this is a pod")
	flags.StringVar(&f.node, "node-name", os.Getenv("NODE_NAME"), "with --kube: the node's name; NODE_NAME, or else the host's name")
	f.nri.register(flags)
	flags.StringSliceVar(&f.configMaps, "kube-configmaps", nil, "with --kube: the ConfigMaps to read, as NAMESPACE/NAME; of each key, the first that has it counts; "+
		"without: kube-system/ack-slo-config, and before it in a pod slo-controller-config of the pod's own namespace")
}

// names reads the names of the ConfigMaps.
func (f *kubeFlags) names() (kube.Names, error) {
	if len(f.configMaps) == 0 {
		return kube.DefaultNames(kube.OwnNamespace()), nil
	}
	var names kube.Names
	for _, text := range f.configMaps {
		namespace, name, ok := strings.Cut(text, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return nil, withHint(misusef("--kube-configmaps: %q is not NAMESPACE/NAME", text), "such as kube-system/ack-slo-config")
		}
		names = append(names, kube.ConfigMap{Namespace: namespace, Name: name})
	}
	return names, nil
}

// nodeName is the name of this node at the API server. The kubelet uses the host's, in lower case
// (pkg/util/node, GetHostname).
func (f *kubeFlags) nodeName() (string, error) {
	if f.node != "" {
		return f.node, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", withHint(fmt.Errorf("name of this node: %w", err), "give it with --node-name")
	}
	return strings.ToLower(strings.TrimSpace(host)), nil
}

// cluster is the knowledge of Kubernetes; nil without --kube.
type cluster struct {
	*kube.Discoverer
	changed atomic.Pointer[func(strategy.Node)] // nil while there is no agent
	fault   atomic.Pointer[error]               // of plimsoll's own file
}

// open makes a client of the API server, which may be away.
func (f *kubeFlags) open(tree *cgroup.Tree, found *cgroupfs.Scanner, file *config.File, log *slog.Logger) (*cluster, error) {
	if !f.on {
		return nil, nil
	}
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	node, err := f.nodeName()
	if err != nil {
		return nil, err
	}
	api, err := kube.Connect(f.kubeconfig, "plimsoll/"+version)
	if err != nil {
		return nil, withHint(err, "outside of a pod, --kubeconfig says where the API server is")
	}
	c := &cluster{}
	c.Discoverer = kube.New(kube.Options{API: api, Node: node, Names: names, Groups: found, Bandwidth: func(group string) (cpu.Bandwidth, error) { return tree.Bandwidth(group) },
		Own: file.Node(), Tenants: file.Tenants(), Changed: c.tell, Log: log, Now: time.Now})
	return c, nil
}

// over returns the discoverer of containers: the scanner's groups, joined with Kubernetes.
func (c *cluster) over(found *cgroupfs.Scanner) agent.Discoverer {
	if c == nil {
		return found
	}
	return c.Discoverer
}

// serve passes the node's strategy to the agent, and reports of other writers to Kubernetes.
func (c *cluster) serve(a *agent.Agent) {
	if c == nil {
		return
	}
	changed := func(s strategy.Node) {
		a.Configure(s, nil)
		if err := c.fault.Load(); err != nil && *err != nil {
			a.Configure(s, *err) // the file is as bad as it was
		}
	}
	c.changed.Store(&changed)
	c.Announce()
	a.Foreign, a.Bounded = c.Foreign, c.Bounded
}

func (c *cluster) tell(s strategy.Node) {
	if changed := c.changed.Load(); changed != nil {
		(*changed)(s)
	}
}

// ready says why the configuration of each pod is not known yet.
func (c *cluster) ready() error {
	if c == nil || c.Status().Ready {
		return nil
	}
	return errors.New("the API server has not listed all pods yet")
}

func (c *cluster) run(ctx context.Context) error {
	if c == nil {
		return nil
	}
	return c.Run(ctx)
}

// note keeps what is wrong with plimsoll's own file.
func (c *cluster) note(err error) {
	if c != nil {
		c.fault.Store(&err)
	}
}

// configure returns what the node gets of a new file.
func (c *cluster) configure(file *config.File) strategy.Node {
	if c == nil {
		return file.Node()
	}
	return c.Configure(file.Node(), file.Tenants())
}

// Health is the part of Status that says whether the agent lives and is ready.
func (r reporter) Health() report.Status {
	s := r.Agent.Health()
	if r.cluster != nil {
		k := r.cluster.Status()
		s.Kubernetes = &report.Kubernetes{Ready: k.Ready, Fault: k.Fault}
	}
	return s
}

// reporter is the agent, with what Kubernetes adds to its status.
type reporter struct {
	*agent.Agent
	cluster *cluster
	resizes *nri.Plugin
	unseen  string // what the agent cannot see, with a hint; "" for nothing
	named   *selection
	meters  meters
	tidy    *time.Timer // nil: nothing is tidied up
	lines   *logLines
	flight  *recorder.Recorder // nil: turned off

	receipts *disk.File
	flags    string // report.Status.Flags
}

func (r reporter) Status() report.Status { return r.complete(r.Agent.Status()) }

// Glance is a Status for who asks each second.
func (r reporter) Glance(list []report.Container) report.Status {
	return r.complete(r.Agent.Glance(list))
}

// complete adds what the agent does not know.
func (r reporter) complete(s report.Status) report.Status {
	if r.tidy != nil {
		r.tidy.Reset(slim.TidyAfter)
	}
	s.AddCuts(nil, len(s.Cuts)) // here, where nothing waits for it
	s.NRI, s.Self.LogDropped, s.Record = nriStatus(r.resizes), r.lines.Dropped(), r.flight.Status()
	if r.unseen != "" {
		s.Problems = append(s.Problems, r.unseen)
	}
	if why := r.receipts.Problem(); why != "" {
		s.Problems = append(s.Problems, fmt.Sprintf(report.ProblemReceipts, why))
	}
	if len(s.Containers) == 0 {
		if why := r.named.empty(); why != "" {
			s.Problems = append(s.Problems, why)
		}
	}
	r.meters.Report(&s)
	r.cluster.report(&s)
	return s.Reached(r.flags)
}

// report adds what the agent knows of Kubernetes; nothing where it is not asked for.
func (c *cluster) report(s *report.Status) {
	if c == nil {
		return
	}
	k := c.Status()
	s.Kubernetes = &report.Kubernetes{Node: k.Node, Reachable: k.Reachable, Fault: k.Fault, Ready: k.Ready, Pods: k.Pods, Matched: k.Matched,
		RejectedNow: k.RejectedNow, RejectedTotal: k.RejectedTotal, EventsDropped: k.EventsDropped}
	for _, m := range k.ConfigMaps {
		s.Kubernetes.ConfigMaps = append(s.Kubernetes.ConfigMaps, report.ConfigMap{Name: m.String(), There: m.There})
	}
	for _, r := range k.Rejected {
		s.Kubernetes.Rejected = append(s.Kubernetes.Rejected, report.Rejected{Object: r.Object, Key: r.Key, Field: r.Field, Fault: r.Msg, Hint: r.Hint})
	}
	cuts := make([]report.Cut, 0, len(k.Cuts))
	for _, c := range k.Cuts {
		cuts = append(cuts, report.Cut(c))
	}
	s.AddCuts(cuts, k.CutsNow)
	s.Problems = append(s.Problems, s.Kubernetes.Problems()...)
	if k.Fault != "" {
		s.Problems = append(s.Problems, fmt.Sprintf(report.ProblemKubernetes, k.Fault))
	}
}
