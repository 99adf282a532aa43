package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/agent"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cluster"
	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
	"plimsoll/internal/diagnose/meter"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/discover/kube"
	"plimsoll/internal/flight/recorder"
	"plimsoll/internal/nri"
	"plimsoll/internal/receipt/disk"
	"plimsoll/internal/report"
	"plimsoll/internal/slim"
)

// kubeFlags are those of run that concern Kubernetes.
type kubeFlags struct {
	on         bool
	kubeconfig string
	node       string
	configMaps []string
	nri        nriFlag

	installation string // report.Status.Installation
}

func (f *kubeFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.on, "kube", false,
		"read the pods of this node from Kubernetes: annotations, ConfigMaps, classes, limits (docs/CONFIG.md)")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "",
		"with --kube: a kubeconfig file; without one, the cluster in which this is a pod")
	flags.StringVar(&f.node, "node-name", os.Getenv("NODE_NAME"),
		"with --kube: the node's name; NODE_NAME, or else the host's name")
	f.nri.register(flags)
	flags.StringSliceVar(&f.configMaps, "kube-configmaps", nil, "with --kube: the ConfigMaps to read, as "+
		"NAMESPACE/NAME; of each key, the first that has it counts; without: kube-system/ack-slo-config, and before "+
		"it in a pod slo-controller-config of the pod's own namespace")
	flags.StringVar(&f.installation, "installation", "", "NAMESPACE/NAME of the DaemonSet whose agent this is, for "+
		"\"plimsoll retire --installation\"")
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
			return nil, withHint(misusef("--kube-configmaps: %q is not NAMESPACE/NAME", text),
				"such as kube-system/ack-slo-config")
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

// open makes a client of the API server, which may be away.
func (f *kubeFlags) open(tree *cgroup.Tree, found *cgroupfs.Scanner, file *config.File,
	log *slog.Logger) (*cluster.Cluster, error) {
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
	return cluster.New(kube.Options{API: api, Node: node, Names: names, Groups: found,
		Bandwidth: func(group string) (cpu.Bandwidth, error) { return tree.Bandwidth(group) },
		Own:       file.Node(), Tenants: file.Tenants(), Log: log, Now: time.Now}), nil
}

// Health is the part of Status that says whether the agent lives and is ready.
func (r reporter) Health() report.Status {
	s := r.Agent.Health()
	r.cluster.Health(&s)
	return s
}

// reporter is the agent, with what Kubernetes adds to its status.
type reporter struct {
	*agent.Agent
	cluster *cluster.Cluster
	resizes *nri.Plugin
	unseen  string // what the agent cannot see, with a hint; "" for nothing
	named   *selection
	meters  meter.Beside
	tidy    *time.Timer // nil: nothing is tidied up
	lines   *logLines

	flags, installation string             // of report.Status
	flight              *recorder.Recorder // nil: turned off
	receipts            *disk.File
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
	s.Installation = r.installation
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
	r.cluster.Report(&s)
	return s.Reached(r.flags)
}
