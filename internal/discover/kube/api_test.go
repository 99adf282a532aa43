package kube

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
)

// wire speaks as much of the API server's protocol as a reflector needs: a watch that begins with what there is.
type wire struct {
	t       *testing.T
	objects map[string]runtime.Object // by resource and field selector
	mu      sync.Mutex
	asked   []string
	events  []corev1.Event
}

func (w *wire) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	w.mu.Lock()
	w.asked = append(w.asked, r.Method+" "+r.URL.Path+" "+q.Get("fieldSelector")+" "+q.Get("watch")+" "+r.UserAgent())
	w.mu.Unlock()
	if r.Method == http.MethodPost {
		w.create(out, r)
		return
	}
	if !strings.Contains(r.Header.Get("Accept"), "protobuf") {
		w.t.Errorf("Accept: %s", r.Header.Get("Accept"))
	}
	out.Header().Set("Content-Type", "application/json")
	send := func(kind string, o runtime.Object) {
		if err := json.NewEncoder(out).Encode(map[string]any{"type": kind, "object": o}); err != nil {
			w.t.Error(err)
		}
	}
	if o := w.objects[resource+" "+q.Get("fieldSelector")]; o != nil {
		send("ADDED", o)
	}
	mark, _ := map[string]runtime.Object{"pods": &corev1.Pod{}, "nodes": &corev1.Node{},
		"configmaps": &corev1.ConfigMap{}}[resource]
	m := mark.(metav1.Object)
	m.SetResourceVersion("7")
	m.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	kind := map[string]string{"pods": "Pod", "nodes": "Node", "configmaps": "ConfigMap"}[resource]
	mark.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	send("BOOKMARK", mark)
	out.(http.Flusher).Flush()
	<-r.Context().Done()
}

func (w *wire) create(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var e corev1.Event
	if magic := "k8s\x00"; strings.HasPrefix(string(body), magic) {
		var u runtime.Unknown
		if err = u.Unmarshal(body[len(magic):]); err == nil {
			err = e.Unmarshal(u.Raw)
		}
	} else if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if err != nil {
		w.t.Errorf("event: %v", err)
	}
	w.mu.Lock()
	w.events = append(w.events, e)
	w.mu.Unlock()
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(http.StatusCreated)
	fmt.Fprint(out, `{"kind":"Event","apiVersion":"v1"}`)
}

// The client speaks the protocol: one request a resource, of this node only, and Events.
func TestConnect(t *testing.T) {
	pod := web(`{"policy": "auto", "cpuBurstPercent": -1}`)
	pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	n := node(nil)
	n.TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
	const pods = "spec.nodeName=n1,status.phase!=Succeeded,status.phase!=Failed"
	server := &wire{t: t, objects: map[string]runtime.Object{"pods " + pods: pod, "nodes metadata.name=n1": n}}
	http := httptest.NewServer(server)
	t.Cleanup(func() { http.CloseClientConnections(); http.Close() })
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: "+
		"u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n", http.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	api, err := Connect(file, "plimsoll/test")
	if err != nil {
		t.Fatal(err)
	}
	g := &groups{wake: make(chan struct{}, 1)}
	g.set(group("u1", "a"))
	w := &world{t: t,
		d: New(Options{API: api, Node: "n1", Names: Names{{"kube-system", "ack-slo-config"}}, Groups: g,
			Own:       strategy.DefaultNode(),
			Bandwidth: func(string) (cpu.Bandwidth, error) { return cpu.Bandwidth{Quota: ms, Period: 100 * ms}, nil },
			Changed:   func(strategy.Node) {}, Log: slog.New(slog.DiscardHandler), Now: time.Now})}
	w.run()
	w.soon("the pod", func() bool { return w.policy() == strategy.Auto && w.d.Status().Reachable })
	w.soon("the Event", func() bool { server.mu.Lock(); defer server.mu.Unlock(); return len(server.events) == 1 })
	server.mu.Lock()
	defer server.mu.Unlock()
	if e := server.events[0]; e.Reason != reasonInvalid || e.InvolvedObject.Name != "web" || e.Namespace != "default" {
		t.Errorf("%+v", e)
	}
	for _, want := range []string{"GET /api/v1/pods " + pods + " true plimsoll/test",
		"GET /api/v1/nodes metadata.name=n1 true plimsoll/test",
		"GET /api/v1/namespaces/kube-system/configmaps metadata.name=ack-slo-config true plimsoll/test",
		"POST /api/v1/namespaces/default/events   plimsoll/test"} {
		count := 0
		for _, a := range server.asked {
			if a == want {
				count++
			}
		}
		if count != 1 {
			t.Errorf("%d times %q; requests: %q", count, want, server.asked)
		}
	}
}

func TestConnectToNothing(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // not in a pod
	for _, file := range []string{"/nonexistent/kubeconfig", ""} {
		if api, err := Connect(file, "x"); err == nil || api != nil {
			t.Errorf("%q: %v, %v", file, api, err)
		}
	}
}
