package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"sync"
	"time"

	"plimsoll/lab/experiment"
)

// apiServer is an API server of the bench's own, which knows some pods.
type apiServer struct {
	address string
	pods    []byte // the events of a watch
	mu      sync.Mutex
	server  *http.Server
}

const nodeName = "bench"

// serve begins to serve pods, and points the agent to it.
func (f *apiServer) serve(b *bench, s *experiment.Setup, pods []listed) (err error) {
	if f.address, err = experiment.FreeAddress(); err != nil {
		return err
	}
	if f.pods, err = watchOf(pods); err != nil {
		return err
	}
	file := b.place("kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {}}]\n"+
		"contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n", "http://"+f.address)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	s.Flags = []string{"--kube", "--kubeconfig", file, "--node-name", nodeName}
	return f.rise()
}

// rise begins to serve.
func (f *apiServer) rise() error {
	l, err := net.Listen("tcp", f.address)
	if err != nil {
		return fmt.Errorf("serve the API: %w", err)
	}
	server := &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}
	f.mu.Lock()
	f.server = server
	f.mu.Unlock()
	go func() { _ = server.Serve(l) }() // until die
	return nil
}

// die ends the server and all its connections.
func (f *apiServer) die() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server != nil {
		_ = f.server.Close()
		f.server = nil
	}
}

// flappingAPI is an API server that dies every second, with all its connections, and is back after a fifth of one. So the
// agent lists all pods again and again.
type flappingAPI struct {
	plain
	apiServer
}

const (
	flapEvery = time.Second
	flapAway  = 200 * time.Millisecond
)

func (f *flappingAPI) prepare(_ context.Context, b *bench, s *experiment.Setup) error {
	list := make([]listed, len(b.pods))
	for i, p := range b.pods {
		list[i] = listed{p, "idle", fmt.Sprintf("%dm", podQuota.Milliseconds()*10)} // of 100 ms
	}
	return f.serve(b, s, list)
}

func (f *flappingAPI) begin(ctx context.Context, _ *bench, _ *experiment.Agent) error {
	f.every(ctx, flapEvery, func(ctx context.Context) error {
		f.die()
		if experiment.Pause(ctx, flapAway) != nil {
			return nil // the bench ends
		}
		return f.rise()
	})
	return nil
}

func (f *flappingAPI) end() error {
	err := f.plain.end()
	f.die()
	return err
}

// ServeHTTP speaks as much of the protocol as a reflector needs: a watch that begins with what there is.
func (f *apiServer) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	resource := path.Base(r.URL.Path)
	kind := map[string]string{"pods": "Pod", "nodes": "Node", "configmaps": "ConfigMap"}[resource]
	if r.Method != http.MethodGet || kind == "" || r.URL.Query().Get("watch") != "true" {
		http.Error(out, "not served here", http.StatusNotFound)
		return
	}
	out.Header().Set("Content-Type", "application/json")
	if resource == "pods" {
		_, _ = out.Write(f.pods) // the reader may have gone
	}
	bookmark, err := event("BOOKMARK", kind, object{"metadata": object{"resourceVersion": "7",
		"annotations": object{"k8s.io/initial-events-end": "true"}}})
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = out.Write(bookmark)
	if flusher, ok := out.(http.Flusher); ok {
		flusher.Flush()
	}
	<-r.Context().Done()
}

// object is one of JSON.
type object map[string]any

// event is one of a watch.
func event(what, kind string, o object) ([]byte, error) {
	o["kind"], o["apiVersion"] = kind, "v1"
	line, err := json.Marshal(object{"type": what, "object": o})
	return append(line, '\n'), err
}

// listed is a pod that the API server knows: whose it is, and the limit of its container.
type listed struct {
	pod
	namespace, limit string
}

// watchOf are the first events of a watch of pods.
func watchOf(pods []listed) (all []byte, err error) {
	for i, p := range pods {
		limit := object{"cpu": p.limit}
		one, failed := event("ADDED", "Pod", object{
			"metadata": object{"name": fmt.Sprintf("web-%d", i), "namespace": p.namespace, "uid": p.uid, "resourceVersion": "6"},
			"spec": object{"nodeName": nodeName, "containers": []object{
				{"name": "web", "image": "none", "resources": object{"limits": limit, "requests": limit}}}},
			"status": object{"phase": "Running", "qosClass": "Burstable", "containerStatuses": []object{
				{"name": "web", "ready": true, "image": "none", "imageID": "none", "restartCount": 0,
					"containerID": "containerd://" + p.container, "state": object{"running": object{}}}}},
		})
		all, err = append(all, one...), errors.Join(err, failed)
	}
	return all, err
}
