// Package kubeapi is an API server of one node for experiments, as far as the agent uses one. It fails on demand: it is
// away, refuses, or hangs.
package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"plimsoll/internal/experiment"
)

// Mood is how the API server treats requests.
type Mood string

// The moods.
const (
	Answers Mood = "answers"
	Away    Mood = "away"   // connections are refused
	Refuses Mood = "errors" // 503
	Hangs   Mood = "hangs"  // it accepts requests, and says nothing
)

// maxLog bounds the changes that a watch can begin behind. A client that comes back later must list again (410), as
// with etcd's compaction.
const maxLog = 200

// change is one event of a watch.
type change struct {
	version int64
	kind    string // ADDED, MODIFIED, DELETED
	object  object
}

// Server is an API server of one node: the pods and the node can be listed and watched,
// there is no ConfigMap, and Events are taken.
type Server struct {
	node    string
	address string

	mu      sync.Mutex
	server  *http.Server // nil: away
	version int64
	pods    map[string]object // by UID
	log     []change
	mood    Mood
	since   time.Time // of the mood
	fails   int64
	news    chan struct{} // closed at the next change of any of these
}

// Open serves on an address of the loopback that no other program is likely to use: the server leaves it and
// comes back.
func Open(node string) (*Server, error) {
	pid := os.Getpid()
	a := &Server{node: node, address: fmt.Sprintf("127.77.%d.%d:0", pid>>8&0xff, 1+pid&0x7f), version: 1,
		pods: map[string]object{}, mood: Away,
		news: make(chan struct{})}
	return a, a.Become(Answers)
}

// Close ends all requests.
func (a *Server) Close() error { return a.Become(Away) }

// Become changes the mood. A server that goes away closes all its connections.
func (a *Server) Become(m Mood) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m != Answers {
		a.fails++
	}
	a.mood, a.since = m, time.Now()
	a.wake()
	switch {
	case m == Away && a.server != nil:
		err := a.server.Close()
		a.server = nil
		return err
	case m == Away || a.server != nil:
		return nil
	}
	l, err := net.Listen("tcp", a.address)
	if err != nil {
		return fmt.Errorf("serve the API: %w", err)
	}
	server := &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second}
	a.address, a.server = l.Addr().String(), server
	go func() { _ = server.Serve(l) }() // until Close
	return nil
}

// Kubeconfig writes the file by which a client finds the server.
func (a *Server) Kubeconfig(dir string) (string, error) {
	file := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: "+
		"u, user: {}}]\n"+
		"contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n", "http://"+a.address)
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// Put stores a pod, new or changed.
func (a *Server) Put(p Pod) {
	o := p.object(a.node)
	a.mu.Lock()
	defer a.mu.Unlock()
	kind := "ADDED"
	if _, known := a.pods[o.Metadata.UID]; known {
		kind = "MODIFIED"
	}
	a.version++
	a.pods[o.Metadata.UID] = o.at(a.version)
	a.note(kind, o)
}

// Drop deletes a pod.
func (a *Server) Drop(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	o := a.pods[uid]
	delete(a.pods, uid)
	a.note("DELETED", o)
}

// note appends a change for the watches.
func (a *Server) note(kind string, o object) {
	a.log = append(a.log, change{a.version, kind, o.at(a.version)})
	if len(a.log) > maxLog {
		a.log = slices.Clone(a.log[len(a.log)-maxLog:])
	}
	a.wake()
}

func (a *Server) wake() {
	close(a.news)
	a.news = make(chan struct{})
}

// Fails is how often the server has failed.
func (a *Server) Fails() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fails
}

// AnswersSince is since when requests are answered; zero: they are not.
func (a *Server) AnswersSince() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mood != Answers {
		return time.Time{}
	}
	return a.since
}

// Flap has the server fail for the end of each span, each time in the next of some ways, until the context ends. Then
// it answers again.
func (a *Server) Flap(ctx context.Context, span, fails time.Duration, moods ...Mood) error {
	for i := 0; ; i++ {
		if experiment.Pause(ctx, span-fails) != nil {
			return nil
		}
		if err := a.Become(moods[i%len(moods)]); err != nil {
			return err
		}
		over := experiment.Pause(ctx, fails)
		if err := a.Become(Answers); err != nil || over != nil {
			return err
		}
	}
}

// ServeHTTP implements http.Handler.
func (a *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !a.admit(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	resource := path.Base(r.URL.Path)
	switch {
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"kind":"Event","apiVersion":"v1"}`)
	case kinds()[resource] == "":
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write(encode(failure(http.StatusNotFound, "NotFound", "this server has no "+resource)))
	case r.URL.Query().Get("watch") != "":
		a.watch(w, r, resource)
	default:
		objects, version := a.list(resource)
		list := object{Kind: kinds()[resource] + "List", APIVersion: "v1", Items: &objects}
		_, _ = w.Write(encode(list.at(version)))
	}
}

// admit does with a request what the mood says. A request of which nothing is said waits for another mood.
func (a *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	for {
		a.mu.Lock()
		now, news := a.mood, a.news
		a.mu.Unlock()
		switch now {
		case Answers:
			return true
		case Away:
			return false // its connection is closed
		case Refuses:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write(encode(failure(http.StatusServiceUnavailable, "ServiceUnavailable",
				"the API server restarts")))
			return false
		}
		select {
		case <-r.Context().Done():
			return false
		case <-news:
		}
	}
}

// list is what there is of a resource, and the version of that.
func (a *Server) list(resource string) ([]object, int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	objects := []object{}
	switch resource {
	case "pods":
		objects = slices.Collect(maps.Values(a.pods))
	case "nodes":
		objects = append(objects, object{Kind: "Node", APIVersion: "v1",
			Metadata: meta{Name: a.node, ResourceVersion: "1"}})
	}
	return objects, a.version
}

// watch sends the changes of a resource until the client leaves, its time is over, or the server goes away.
func (a *Server) watch(w http.ResponseWriter, r *http.Request, resource string) {
	q := r.URL.Query()
	ctx := r.Context()
	if seconds, err := strconv.Atoi(q.Get("timeoutSeconds")); err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	send := func(kind string, o any) bool {
		_, err := w.Write(append(encode(map[string]any{"type": kind, "object": o}), '\n'))
		return err == nil
	}
	from, err := strconv.ParseInt(q.Get("resourceVersion"), 10, 64)
	if q.Get("sendInitialEvents") == "true" {
		var objects []object
		objects, from = a.list(resource)
		for _, o := range objects {
			send("ADDED", o)
		}
		mark := object{Kind: kinds()[resource], APIVersion: "v1",
			Metadata: meta{Annotations: map[string]string{"k8s.io/initial-events-end": "true"}}}
		send("BOOKMARK", mark.at(from))
	} else if err != nil {
		send("ERROR", failure(http.StatusGone, "Expired", "no version is given"))
		return
	}
	for {
		w.(http.Flusher).Flush()
		changes, news, err := a.after(from, resource)
		switch {
		case errors.Is(err, errCompacted):
			send("ERROR", failure(http.StatusGone, "Expired", err.Error()))
			return
		case err != nil: // the watch ends, and the next is refused
			return
		}
		for _, c := range changes {
			if from = c.version; !send(c.kind, c.object) {
				return
			}
		}
		if len(changes) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
	}
}

var (
	errCompacted = errors.New("too old resource version")
	errAway      = errors.New("the server goes away")
)

// after lists the changes of a resource after a version, and what to wait for where there is none. There are
// changes of pods only.
func (a *Server) after(version int64, resource string) ([]change, <-chan struct{}, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.mood == Away || a.mood == Refuses:
		return nil, nil, errAway
	case a.mood == Hangs || resource != "pods" || version >= a.version:
		return nil, a.news, nil
	case version < a.version-int64(len(a.log)):
		return nil, nil, errCompacted
	}
	return slices.Clone(a.log[len(a.log)-int(a.version-version):]), nil, nil
}
