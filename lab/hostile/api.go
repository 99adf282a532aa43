package main

import (
	"context"
	"errors"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/lab/kubeapi"
)

const nodeName = "bench"

// serve begins to serve pods, and points the agent to them.
func serve(b *bench, s *experiment.Setup, pods []kubeapi.Pod) (*kubeapi.Server, error) {
	api, err := kubeapi.Open(nodeName)
	if err != nil {
		return nil, err
	}
	for _, p := range pods {
		api.Put(p)
	}
	file, err := api.Kubeconfig(b.dir)
	s.Flags = []string{"--kube", "--kubeconfig", file, "--node-name", nodeName}
	return api, err
}

// end ends the server, where there is one.
func end(api *kubeapi.Server) error {
	if api == nil {
		return nil
	}
	return api.Close()
}

// listed is a pod as the API server knows it: whose it is, and the limit of its container in thousandths of a CPU.
func (p pod) listed(namespace string, limit int) kubeapi.Pod {
	return kubeapi.Pod{Namespace: namespace, Name: "web-" + p.uid, UID: p.uid,
		Containers: []kubeapi.Container{{Name: "web", ID: p.container, Limit: limit, Confirmed: limit}}}
}

// idlePods are the idle pods of the bench.
func (b *bench) idlePods() (list []kubeapi.Pod) {
	for _, p := range b.pods {
		list = append(list, p.listed("idle", int(podQuota.Milliseconds())*10)) // of 100 ms
	}
	return list
}

// flappingAPI is an API server that dies every second, with all its connections, and is back after a fifth of one. So
// the agent lists all pods again and again.
type flappingAPI struct {
	plain
	api  *kubeapi.Server
	stop context.CancelFunc
	over chan error
}

const (
	flapEvery = time.Second
	flapAway  = 200 * time.Millisecond
)

func (f *flappingAPI) prepare(_ context.Context, b *bench, s *experiment.Setup) (err error) {
	f.api, err = serve(b, s, b.idlePods())
	return err
}

func (f *flappingAPI) begin(ctx context.Context, _ *bench, _ *experiment.Agent) error {
	ctx, f.stop = context.WithCancel(ctx)
	f.over = make(chan error, 1)
	go func() { f.over <- f.api.Flap(ctx, flapEvery, flapAway, kubeapi.Away) }()
	return nil
}

func (f *flappingAPI) end() (err error) {
	if f.stop != nil {
		f.stop()
		err = <-f.over
	}
	return errors.Join(err, end(f.api))
}
