package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// fakeCluster answers as an API server does: a list of pods, and a forwarded port of each.
type fakeCluster struct {
	pods  []corev1.Pod
	agent map[string]http.HandlerFunc // by pod
	asked []string
}

func (f *fakeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/v1/namespaces/plimsoll/pods" {
		f.asked = append(f.asked, r.URL.Query().Get("labelSelector")+" "+r.URL.Query().Get("fieldSelector"))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
			Items: f.pods})
		return
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/plimsoll/pods/")
	pod, isForward := strings.CutSuffix(rest, "/portforward")
	if h := f.agent[pod]; ok && isForward && h != nil && r.Method == http.MethodPost {
		forward(w, r, h)
		return
	}
	http.Error(w, "no such pod", http.StatusNotFound)
}

// forward connects each pair of streams that is opened to a server, as the kubelet does (SPDY).
func forward(w http.ResponseWriter, r *http.Request, server http.HandlerFunc) {
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return
	}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
		go func() {
			<-replied
			defer s.Close()
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError ||
				s.Headers().Get(corev1.PortHeader) != "12780" {
				return
			}
			request, err := http.ReadRequest(bufio.NewReader(s))
			if err != nil {
				return
			}
			answer := httptest.NewRecorder()
			server(answer, request)
			_ = answer.Result().Write(s)
		}()
		return nil
	})
	if conn != nil {
		<-conn.CloseChan()
	}
}

func agentPod(name, node string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "plimsoll", Name: name},
		Spec: corev1.PodSpec{NodeName: node,
			Containers: []corev1.Container{{Name: "plimsoll",
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 12779},
					{Name: "local", ContainerPort: 12780}}}}}}
}

// kubectlPlimsoll runs the plugin against a fake cluster.
func kubectlPlimsoll(t *testing.T, f *fakeCluster, args ...string) (stdout string, err error) {
	t.Helper()
	server := httptest.NewServer(f)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "` + server.URL + `"}}], users: [{name: u, user: {}}],
contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	root := newPlugin()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(append(args, "--kubeconfig", file))
	err = root.Execute()
	return out.String(), err
}

func TestPluginAsksEachNodeOnce(t *testing.T) {
	status := (&fakeAgent{}).Status()
	says := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/status":
			_ = report.WriteJSON(w, status)
		case "/api/v1/report":
			_ = report.WriteJSON(w, report.Of(status))
		}
	}
	standsBy := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "stands by", http.StatusServiceUnavailable)
	}
	f := &fakeCluster{pods: []corev1.Pod{agentPod("new", "n2"), agentPod("old", "n2"), agentPod("one", "n1")},
		agent: map[string]http.HandlerFunc{"new": standsBy, "old": says, "one": says}}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"status"}, "default/web/nginx"},
		{[]string{"report"}, "default/web/nginx"},
	} {
		out, err := kubectlPlimsoll(t, f, c.args...)
		if err != nil {
			t.Errorf("%v: %v", c.args, err)
		}
		if n1, n2 := strings.Index(out, "\nn1 "), strings.Index(out, "\nn2 "); !strings.HasPrefix(out, "NODE  NAME") ||
			n1 < 0 || n2 < n1 || strings.Count(out, c.want) < 2 ||
			strings.Contains(out, "stands by") {
			t.Errorf("%v: got\n%s", c.args, out)
		}
	}
	out, err := kubectlPlimsoll(t, f, "status", "--json", "--node", "n1", "-l", "a=b")
	var got report.Cluster[report.Status]
	if e := json.Unmarshal([]byte(out), &got); e != nil || err != nil || got.Schema != report.ClusterSchema ||
		len(got.Nodes) != 2 ||
		got.Nodes[0].Node != "n1" || got.Nodes[0].Answer.Version != "1" {
		t.Errorf("%v, %v, %s", err, e, out)
	}
	if last := f.asked[len(f.asked)-1]; last != "a=b spec.nodeName=n1" {
		t.Errorf("the API server got a request for %q", last)
	}
}

// TestPluginStatusOfAName: only the nodes that have it, and only that.
func TestPluginStatusOfAName(t *testing.T) {
	says := func(pod string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			s := (&fakeAgent{}).Status()
			s.Containers = append(s.Containers, report.Container{Cgroup: "/" + pod, Name: "default/" + pod,
				Level: "container"})
			_ = report.WriteJSON(w, s)
		}
	}
	f := &fakeCluster{pods: []corev1.Pod{agentPod("one", "n1"), agentPod("two", "n2")},
		agent: map[string]http.HandlerFunc{"one": says("a"), "two": says("b")}}
	out, err := kubectlPlimsoll(t, f, "status", "default/b")
	if err != nil || !strings.Contains(out, "\nn2 ") || strings.Contains(out, "n1") || strings.Contains(out, "nginx") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := kubectlPlimsoll(t, f, "status", "default/c"); err == nil ||
		!strings.Contains(err.Error(), `no container is called "default/c"`) {
		t.Errorf("%v", err)
	}
}

// TestPluginOfAllNodes: the table of all nodes, and the paragraph about a pod of one of them.
func TestPluginOfAllNodes(t *testing.T) {
	says := func(lost time.Duration) http.HandlerFunc {
		begun := time.Now()
		return func(w http.ResponseWriter, _ *http.Request) {
			s := (&fakeAgent{}).Status()
			s.Now = s.Now.Add(time.Since(begun))
			for i := range s.Containers {
				s.Containers[i].Pod = path.Dir(s.Containers[i].Name)
				s.Containers[i].Strategy.Policy = strategy.None
				s.Containers[i].Totals.ThrottledWall = time.Duration(float64(lost) * time.Since(begun).Seconds())
			}
			_ = report.WriteJSON(w, s)
		}
	}
	f := &fakeCluster{pods: []corev1.Pod{agentPod("one", "n1"), agentPod("two", "n2")},
		agent: map[string]http.HandlerFunc{"one": says(0), "two": says(100 * time.Millisecond)}}
	out, err := kubectlPlimsoll(t, f, "top", "--once")
	if lines := strings.Split(out, "\n"); err != nil || !strings.HasPrefix(out, "n2: default/") ||
		!strings.Contains(out, "2 nodes idle: ") || strings.Count(out, "\n n1 ")+strings.Count(out, " n1 ") < 2 ||
		len(lines) < 6 || strings.Index(out, " n2 ") > strings.Index(out, " n1 ") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = kubectlPlimsoll(t, f, "why", "default/web", "--for", "300ms", "--node", "n2")
	if out = joined(out); err != nil || !strings.Contains(out, "Node n2: default/web/nginx stood still for ") ||
		!strings.Contains(out, "its policy is none") || !strings.Contains(out, "To do: set its policy to auto") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := kubectlPlimsoll(t, f, "why", "default/wbe", "--for", "1ms"); err == nil ||
		!strings.Contains(err.Error(), "no container is called") {
		t.Errorf("%v", err)
	}
}

// TestPluginTellsTheFiguresOfTheNode: a cause has those of the pod's node, and no sum over all nodes.
func TestPluginTellsTheFiguresOfTheNode(t *testing.T) {
	begun := time.Now()
	says := func(node report.Node, one int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			s := (&fakeAgent{}).Status()
			s.Now, s.Node, s.Containers = s.Now.Add(time.Since(begun)), node, s.Containers[one:one+1]
			s.Containers[0].Totals.ThrottledWall = time.Since(begun) / 10
			_ = report.WriteJSON(w, s)
		}
	}
	f := &fakeCluster{pods: []corev1.Pod{agentPod("one", "n1"), agentPod("two", "n2")},
		agent: map[string]http.HandlerFunc{"one": says(report.Node{State: "idle", Capacity: 632, Used: 34.1}, 0),
			"two": says(report.Node{State: "overload", Capacity: 8, Used: 7.9}, 1)}}
	out, err := kubectlPlimsoll(t, f, "why", "default/api", "--for", "300ms")
	if want := "the node has nothing to spare: 7.90 of 8.00 CPUs are used."; err != nil ||
		!strings.Contains(joined(out), want) {
		t.Errorf("%v, want %q in\n%s", err, want, out)
	}
}

// TestPluginNamesTheAgentsPod: a step that only an agent's program has is called in its pod,
// with the path that the agent knows, which is one word to a shell.
func TestPluginNamesTheAgentsPod(t *testing.T) {
	until := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	begun := time.Now()
	f := &fakeCluster{pods: []corev1.Pod{agentPod("one", "n1")},
		agent: map[string]http.HandlerFunc{"one": func(w http.ResponseWriter, _ *http.Request) {
			s := (&fakeAgent{}).Status()
			s.Now = s.Now.Add(time.Since(begun))
			for i := range s.Containers {
				s.Containers[i].Paused, s.Containers[i].Totals.ThrottledWall = &until, time.Since(begun)/10
				s.Containers[i].Cgroup += `-\x2d;reboot`
			}
			_ = report.WriteJSON(w, s)
		}}}
	out, err := kubectlPlimsoll(t, f, "why", "default/web/nginx", "--for", "300ms")
	want := "To do: `kubectl -n plimsoll exec one -- /plimsoll resume '/pods/web-\\x2d;reboot'` ends the pause."
	if err != nil || !strings.Contains(joined(out), want) {
		t.Errorf("%v, want %q in\n%s", err, want, out)
	}
}

// TestPluginDiagnosesByThePodThatAnswers: also by one that is not ready, and not by the one that stands by. That it
// cannot run a program is an error, and so is a pod without containers.
func TestPluginDiagnosesByThePodThatAnswers(t *testing.T) {
	f := &fakeCluster{pods: []corev1.Pod{agentPod("new", "n1"), agentPod("old", "n1")},
		agent: map[string]http.HandlerFunc{
			"new": func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "stands by", http.StatusServiceUnavailable)
			},
			"old": func(w http.ResponseWriter, _ *http.Request) {
				s := (&fakeAgent{}).Status()
				s.Containers = append(s.Containers, report.Container{Cgroup: "/empty", Name: "default/empty",
					Level: "pod"})
				_ = report.WriteJSON(w, s)
			}}}
	out, err := kubectlPlimsoll(t, f, "diagnose", "default/web", "--for", "1s")
	if err == nil || exitCode(err) != exitNoAgent || !strings.HasPrefix(out, "== n1 (pod old)\nno answer: ") ||
		strings.Contains(out, "pod new") {
		t.Errorf("%v: %q", err, out)
	}
	if _, err := kubectlPlimsoll(t, f, "diagnose", "default/empty"); err == nil ||
		!strings.Contains(err.Error(), "no container is called") {
		t.Errorf("of no container: %v", err)
	}
}

// TestPluginChecksBeforeItAsks: what an agent would refuse is wrong use, and no agent is asked. The example of plan
// works.
func TestPluginChecksBeforeItAsks(t *testing.T) {
	cmd := (&plugin{}).planCommand()
	call, _ := strings.CutPrefix(cmd.Example, "  kubectl plimsoll ")
	for args, want := range map[string]int{call: exitNoAgent, "plan --watch 11s": exitMisused,
		"plan --watch -1s": exitMisused, "plan --policy nosuch": exitMisused,
		"diagnose default/web --for 10ms": exitMisused} {
		f := &fakeCluster{pods: []corev1.Pod{agentPod("one", "n1")}} // which has no exec
		if _, err := kubectlPlimsoll(t, f, strings.Fields(args)...); err == nil || exitCode(err) != want ||
			want == exitMisused && len(f.asked) > 0 {
			t.Errorf("%s: %v, asked for %v; want exit code %d", args, err, f.asked, want)
		}
	}
}

func TestPluginListsSilentNodes(t *testing.T) {
	f := &fakeCluster{pods: []corev1.Pod{agentPod("one", "n1")}, agent: map[string]http.HandlerFunc{
		"one": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "stands by", http.StatusServiceUnavailable)
		}}}
	out, err := kubectlPlimsoll(t, f, "status")
	if err == nil || !strings.Contains(err.Error(), "1 of 1") || !strings.Contains(out, "no answer") ||
		exitCode(err) != exitNoAgent {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := kubectlPlimsoll(t, &fakeCluster{}, "status"); err == nil ||
		!strings.Contains(err.Error(), "no agent's pod") {
		t.Errorf("of no pod: %v", err)
	}
}

// TestPluginSaysWhereItDidNotLook: a silent node is named where a name is not found, which may be there, and the exit
// code says that something is missing where another node has an answer.
func TestPluginSaysWhereItDidNotLook(t *testing.T) {
	says := func(w http.ResponseWriter, _ *http.Request) { _ = report.WriteJSON(w, (&fakeAgent{}).Status()) }
	silent := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "stands by", http.StatusServiceUnavailable)
	}
	for _, nodes := range [][]string{{"n1", "n2"}, {"n2", "n1"}} { // the silent one is read last, and first
		f := &fakeCluster{pods: []corev1.Pod{agentPod("one", nodes[0]), agentPod("two", nodes[1])},
			agent: map[string]http.HandlerFunc{"one": says, "two": silent}}
		for args, want := range map[string]string{
			"status only/there":         `no container is called "only/there"; ` + nodes[1] + ": no answer: ",
			"why only/there --for 1ms":  `no container is called "only/there"; ` + nodes[1] + ": no answer: ",
			"diagnose only/there":       `no container is called "only/there"; ` + nodes[1] + ": no answer: ",
			"status default/web":        "1 of 2 nodes gave no answer",
			"why default/web --for 1ms": nodes[1] + ": no answer: ",
			"top --once":                nodes[1] + ": no answer: ",
		} {
			out, err := kubectlPlimsoll(t, f, strings.Fields(args)...)
			if err == nil || !strings.HasPrefix(err.Error(), want) || exitCode(err) != exitNoAgent ||
				strings.Contains(out, "nginx") == strings.Contains(args, "only/there") {
				t.Errorf("%s: %v, want %s\n%s", args, err, want, out)
			}
		}
	}
}

func TestCalledAsPlugin(t *testing.T) {
	for name, want := range map[string]bool{"/usr/local/bin/kubectl-plimsoll": true, "kubectl-plimsoll.exe": true,
		"/plimsoll": false, "kubectl": false} {
		if got := asPlugin(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
