package main

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

	"plimsoll/lab/experiment"
)

// mood is how the API server treats requests.
type mood string

// The moods.
const (
	answers mood = "answers"
	away    mood = "away"   // connections are refused
	refuses mood = "errors" // 503
	hangs   mood = "hangs"  // it accepts requests, and says nothing
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

// api is an API server of one node, as far as the agent uses one: the pods and the node can be listed and watched,
// there is no ConfigMap, and Events are taken.
type api struct {
	node    string
	address string

	mu      sync.Mutex
	server  *http.Server // nil: away
	version int64
	pods    map[string]object // by UID
	log     []change
	mood    mood
	since   time.Time // of the mood
	flaps   int64
	news    chan struct{} // closed at the next change of any of these
}

// openAPI serves on an address of the loopback that no other program is likely to use: the server leaves it and
// comes back.
func openAPI(node string) (*api, error) {
	pid := os.Getpid()
	a := &api{node: node, address: fmt.Sprintf("127.77.%d.%d:0", pid>>8&0xff, 1+pid&0x7f), version: 1, pods: map[string]object{}, mood: away,
		news: make(chan struct{})}
	return a, a.become(answers)
}

// Close ends all requests.
func (a *api) Close() error { return a.become(away) }

// become changes the mood. A server that goes away closes all its connections.
func (a *api) become(m mood) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m != answers {
		a.flaps++
	}
	a.mood, a.since = m, time.Now()
	a.wake()
	switch {
	case m == away && a.server != nil:
		err := a.server.Close()
		a.server = nil
		return err
	case m == away || a.server != nil:
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

// kubeconfig writes the file by which a client finds the server.
func (a *api) kubeconfig(dir string) (string, error) {
	file := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {}}]\n"+
		"contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n", "http://"+a.address)
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// put stores a pod, new or changed.
func (a *api) put(o object) {
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

func (a *api) drop(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	o := a.pods[uid]
	delete(a.pods, uid)
	a.note("DELETED", o)
}

// note appends a change for the watches.
func (a *api) note(kind string, o object) {
	a.log = append(a.log, change{a.version, kind, o.at(a.version)})
	if len(a.log) > maxLog {
		a.log = slices.Clone(a.log[len(a.log)-maxLog:])
	}
	a.wake()
}

func (a *api) wake() {
	close(a.news)
	a.news = make(chan struct{})
}

// answersSince is since when requests are answered; zero: they are not.
func (a *api) answersSince() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mood != answers {
		return time.Time{}
	}
	return a.since
}

// flap has the server fail for the last fourth of each span, each time in another way, until the context ends. Then
// it answers again.
func (a *api) flap(ctx context.Context, span time.Duration) error {
	moods := []mood{away, refuses, hangs}
	for i := 0; ; i++ {
		if experiment.Pause(ctx, span*3/4) != nil {
			return nil
		}
		if err := a.become(moods[i%len(moods)]); err != nil {
			return err
		}
		over := experiment.Pause(ctx, span/4)
		if err := a.become(answers); err != nil || over != nil {
			return err
		}
	}
}

// ServeHTTP implements http.Handler.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
func (a *api) admit(w http.ResponseWriter, r *http.Request) bool {
	for {
		a.mu.Lock()
		now, news := a.mood, a.news
		a.mu.Unlock()
		switch now {
		case answers:
			return true
		case away:
			return false // its connection is closed
		case refuses:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write(encode(failure(http.StatusServiceUnavailable, "ServiceUnavailable", "the API server restarts")))
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
func (a *api) list(resource string) ([]object, int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	objects := []object{}
	switch resource {
	case "pods":
		objects = slices.Collect(maps.Values(a.pods))
	case "nodes":
		objects = append(objects, object{Kind: "Node", APIVersion: "v1", Metadata: meta{Name: a.node, ResourceVersion: "1"}})
	}
	return objects, a.version
}

// watch sends the changes of a resource until the client leaves, its time is over, or the server goes away.
func (a *api) watch(w http.ResponseWriter, r *http.Request, resource string) {
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
		mark := object{Kind: kinds()[resource], APIVersion: "v1", Metadata: meta{Annotations: map[string]string{"k8s.io/initial-events-end": "true"}}}
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
func (a *api) after(version int64, resource string) ([]change, <-chan struct{}, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.mood == away || a.mood == refuses:
		return nil, nil, errAway
	case a.mood == hangs || resource != "pods" || version >= a.version:
		return nil, a.news, nil
	case version < a.version-int64(len(a.log)):
		return nil, nil, errCompacted
	}
	return slices.Clone(a.log[len(a.log)-int(a.version-version):]), nil, nil
}
