package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"plimsoll/internal/hint"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	streaming "k8s.io/streaming/pkg/httpstream"
)

// Cluster reads the state of agents from an API server, for a person or for a hook of the chart.
type Cluster struct {
	client
	config *rest.Config
}

// Reach makes a client as Connect does, but for people: where a pod is not the place, of what kubectl would use.
func Reach(kubeconfig, context, userAgent string) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: context})
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
	return &Cluster{c, config}, nil
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
	data, err := c.Get().AbsPath("/apis/apps/v1/namespaces", namespace, "daemonsets", name).SetHeader("Accept",
		"application/json").DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err != nil {
		return DaemonSet{}, fmt.Errorf("daemonset %s: %w", path.Join(namespace, name), err)
	}
	return DaemonSet{o.Metadata.Generation, o.Status.ObservedGeneration, o.Status.DesiredNumberScheduled,
		o.Status.NumberReady}, nil
}

// AgentPod is where an agent runs.
type AgentPod struct {
	Namespace, Name, Node string
	Port                  int // on the pod's loopback interface; 0: there is none
}

// localPort is the name, in the chart, of the port that the pod's loopback interface has.
const localPort = "local"

// agentContainer is the name, in the chart, of the container in which the agent runs.
const agentContainer = "plimsoll"

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
				if port.Name == localPort {
					a.Port = int(port.ContainerPort)
				}
			}
		}
		agents = append(agents, a)
	}
	return agents, nil
}

// Ask sends a GET to an agent, through a port that the API server forwards to the pod's loopback interface.
func (c *Cluster) Ask(ctx context.Context, a AgentPod, path string) ([]byte, error) {
	if a.Port == 0 {
		return nil, fmt.Errorf("pod %s: no container has a port of the name %s", a.Name, localPort)
	}
	url := c.Post().Namespace(a.Namespace).Resource(string(Pods)).Name(a.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, fmt.Errorf("forward a port: %w", err)
	}
	dialer := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	if tunnel, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, c.config); err == nil {
		dialer = portforward.NewFallbackDialerForStreaming(tunnel, dialer, notUpgraded)
	}
	forwarding, stop := context.WithCancel(klog.NewContext(ctx, logr.Discard())) // what goes wrong is in the error
	ready := make(chan struct{})
	forward, err := portforward.NewOnAddressesForStreamingWithContext(forwarding, dialer, []string{"127.0.0.1"},
		[]string{fmt.Sprintf("0:%d", a.Port)}, ready, io.Discard, io.Discard)
	if err != nil {
		stop()
		return nil, fmt.Errorf("forward a port: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forward.ForwardPorts() }()
	defer stop()
	select {
	case <-ready:
	case err := <-ended:
		return nil, fmt.Errorf("forward a port: %w", err)
	case <-ctx.Done(): // the dial has no context, and ends later (client-go, negotiateSPDYOverWebsocket)
		return nil, ctx.Err()
	}
	defer func() {
		stop()
		<-ended
	}()
	ports, err := forward.GetPorts()
	if err != nil || len(ports) != 1 {
		return nil, fmt.Errorf("forward a port: %d ports: %w", len(ports), err)
	}
	return get(ctx, fmt.Sprintf("http://127.0.0.1:%d%s", ports[0].Local, path))
}

// notUpgraded says whether an API server, or a proxy before it, does not take the newer kind of stream.
func notUpgraded(err error) bool {
	return streaming.IsUpgradeFailure(err) || streaming.IsHTTPSProxyError(err)
}

// maxAnswer bounds the answer of an agent.
const maxAnswer = 64 << 20

func get(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil || res.StatusCode == http.StatusOK {
		return data, err
	}
	var said struct{ Error string }
	if json.Unmarshal(data, &said) == nil && said.Error != "" {
		return nil, errors.New(said.Error)
	}
	return nil, fmt.Errorf("it answered %s", res.Status)
}

// Exec runs a command in the agent's container, and returns what it writes to standard output. It takes the right to
// create pods/exec, which is as good as root on the node.
func (c *Cluster) Exec(ctx context.Context, a AgentPod, command ...string) ([]byte, error) {
	r := c.Post().Namespace(a.Namespace).Resource(string(Pods)).Name(a.Name).SubResource("exec").
		Param("container", agentContainer).Param("stdout", "true").Param("stderr", "true")
	for _, word := range command {
		r = r.Param("command", word)
	}
	executor, err := remotecommand.NewSPDYExecutor(c.config, http.MethodPost, r.URL())
	if err != nil {
		return nil, fmt.Errorf("exec: %w", err)
	}
	var run remotecommand.Executor = executor
	if websocket, err := remotecommand.NewWebSocketExecutor(c.config, http.MethodGet, r.URL().String()); err == nil {
		if run, err = remotecommand.NewFallbackExecutor(websocket, executor, notUpgraded); err != nil {
			return nil, fmt.Errorf("exec: %w", err)
		}
	}
	var out, said bytes.Buffer
	if err := run.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &said}); err != nil {
		if text := bytes.TrimSpace(said.Bytes()); len(text) > 0 {
			return nil, fmt.Errorf("%.500s", text)
		}
		return nil, fmt.Errorf("exec: %w", err)
	}
	return out.Bytes(), nil
}

// AwaitDaemonSet waits until every pod of a DaemonSet of the chart's, which puts everything back, is ready. It also
// waits for an API server that does not answer.
func AwaitDaemonSet(ctx context.Context, namespace, name string, ask func(context.Context) (DaemonSet, error),
	every time.Duration) error {
	for {
		d, err := ask(ctx)
		if err == nil && d.Done() {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("ready on %d of %d nodes", d.Ready, d.Desired)
		}
		select {
		case <-ctx.Done():
			return hint.With(fmt.Errorf("not all nodes have put everything back: %w (%w)", err, ctx.Err()),
				unrestoredHint(namespace, name))
		case <-time.After(every):
		}
	}
}

// unrestoredHint is what to do when some nodes are not done. The chart adds "-restore" to the name of its objects.
func unrestoredHint(namespace, name string) string {
	return strings.NewReplacer("NAMESPACE", namespace, "RESTORE", name, "NAME",
		strings.TrimSuffix(name, "-restore")).Replace(
		"`kubectl get pods --namespace NAMESPACE -l app.kubernetes.io/name=NAME,app.kubernetes.io/component=restore " +
			"-o wide` shows where; `helm uninstall RELEASE --namespace NAMESPACE --no-hooks` goes on all the same, " +
			"and `kubectl delete daemonset,job,serviceaccount,role,rolebinding --namespace NAMESPACE " +
			"-l app.kubernetes.io/name=NAME` then removes what the hooks left; `kubectl delete daemonset RESTORE " +
			"--namespace NAMESPACE` and `kubectl rollout restart daemonset/NAME --namespace NAMESPACE` have the " +
			"agents that are done write again")
}
