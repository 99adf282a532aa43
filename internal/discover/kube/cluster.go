package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster reads the state of agents from an API server, for a person or for a hook of the chart.
type Cluster struct{ client }

// Reach makes a client as Connect does, but for people: where a pod is not the place, of what kubectl would use.
func Reach(kubeconfig, context, userAgent string) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return reach(config, userAgent)
}

func reach(config *rest.Config, userAgent string) (*Cluster, error) {
	c, err := clientOf(config, userAgent)
	if err != nil {
		return nil, err
	}
	return &Cluster{c}, nil
}

// InCluster makes one of a kubeconfig file, or of the cluster in which this is a pod.
func InCluster(kubeconfig, userAgent string) (*Cluster, error) {
	config, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	return reach(config, userAgent)
}

// DaemonSet is how far one has come.
type DaemonSet struct {
	Generation, Observed int64
	Desired, Ready       int
}

// Done says whether every pod of the DaemonSet is ready.
func (d DaemonSet) Done() bool {
	return d.Observed >= d.Generation && d.Observed > 0 && d.Ready >= d.Desired
}

// DaemonSet reads a DaemonSet.
func (c *Cluster) DaemonSet(ctx context.Context, namespace, name string) (DaemonSet, error) {
	var o struct {
		Metadata struct{ Generation int64 }
		Status   struct {
			ObservedGeneration                  int64
			DesiredNumberScheduled, NumberReady int
		}
	}
	data, err := c.Get().AbsPath("/apis/apps/v1/namespaces", namespace, "daemonsets", name).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err != nil {
		return DaemonSet{}, fmt.Errorf("daemonset %s: %w", path.Join(namespace, name), err)
	}
	return DaemonSet{o.Metadata.Generation, o.Status.ObservedGeneration, o.Status.DesiredNumberScheduled, o.Status.NumberReady}, nil
}

// AgentPod is where an agent runs.
type AgentPod struct {
	Namespace, Name, Node string
	Port                  int
	Ready                 bool
}

// httpPort is the name of the container's port in the chart.
const httpPort = "http"

// Agents lists the pods that the selector chooses, of one node or, if that is "", of all.
func (c *Cluster) Agents(ctx context.Context, namespace, selector, node string) ([]AgentPod, error) {
	o := metav1.ListOptions{LabelSelector: selector}
	if node != "" {
		o.FieldSelector = "spec.nodeName=" + node
	}
	list, err := c.List(ctx, Pods, namespace, o)
	if err != nil {
		return nil, fmt.Errorf("pods of the agents: %w", err)
	}
	var agents []AgentPod
	for _, p := range list.(*corev1.PodList).Items {
		a := AgentPod{Namespace: p.Namespace, Name: p.Name, Node: p.Spec.NodeName}
		for _, ct := range p.Spec.Containers {
			for _, port := range ct.Ports {
				if port.Name == httpPort {
					a.Port = int(port.ContainerPort)
				}
			}
		}
		for _, cond := range p.Status.Conditions {
			a.Ready = a.Ready || cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue
		}
		agents = append(agents, a)
	}
	return agents, nil
}

// Ask sends a GET to an agent through the API server's proxy.
func (c *Cluster) Ask(ctx context.Context, a AgentPod, path string, query map[string]string) ([]byte, error) {
	r := c.Get().Namespace(a.Namespace).Resource(string(Pods)).Name(a.Name+":"+strconv.Itoa(a.Port)).SubResource("proxy").Suffix(path).
		SetHeader("Accept", "application/json")
	for k, v := range query {
		r = r.Param(k, v)
	}
	data, err := r.Do(ctx).Raw()
	var said struct{ Error string }
	if err != nil && json.Unmarshal(data, &said) == nil && said.Error != "" {
		return nil, errors.New(said.Error) // the agent's own word, in place of the API server's about it
	}
	return data, err
}
