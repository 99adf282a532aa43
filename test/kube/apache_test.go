//go:build kube

package kube

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/load"
)

// The published apache-demo: a pod of limit 4 and 24 requests a second, each a text of 1 MiB compressed anew, which used a third
// of the limit. Here it has an eighth of the limit, and as much of that in use, which two CPUs can serve.
const (
	apacheLimit = "500m"
	apacheRate  = 6.0
	apacheTime  = 20 * time.Second
)

// apacheDemo is the pod. Apache, and what it needs, are the host's: there is no registry.
func apacheDemo(t *testing.T) *pod {
	t.Helper()
	dir := filepath.Join(scratch, "apache")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	conf := []string{`ServerName demo`, `DefaultRuntimeDir /tmp`, `PidFile /tmp/pid`, `ErrorLog /dev/stderr`, `Listen 8010`, `User www-data`, `Group www-data`,
		`ServerLimit 1`, `StartServers 1`, `ThreadsPerChild 64`, `MaxRequestWorkers 64`, `KeepAlive On`, `MaxKeepAliveRequests 0`, `KeepAliveTimeout 600`,
		`TypesConfig /dev/null`, `AddType text/plain .txt`}
	for _, m := range []string{"mpm_event", "authz_core", "mime", "filter", "deflate"} {
		conf = append(conf, "LoadModule "+m+"_module /usr/lib/apache2/modules/mod_"+m+".so")
	}
	conf = append(conf, `AddOutputFilterByType DEFLATE text/plain`, `DocumentRoot /demo`, `<Directory /demo>`, `Require all granted`, `</Directory>`, "")
	for name, text := range map[string]string{"apache.conf": strings.Join(conf, "\n"), "file.txt": string(load.Text(1, 1<<20))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := want{name: "apache-demo", annotations: map[string]string{annotation: `{"policy": "none"}`},
		containers: []container{{"apache", apacheLimit, apacheLimit, []string{"/usr/sbin/apache2", "-f", "/demo/apache.conf", "-D", "FOREGROUND"}}}}
	o := w.manifest()
	spec := o["spec"].(object)
	var mounts, volumes []object
	for i, at := range []string{"/usr", "/lib", "/lib64", "/etc/passwd", "/etc/group", dir} {
		name, inside := fmt.Sprintf("v%d", i), at
		if at == dir {
			inside = "/demo"
		}
		mounts = append(mounts, object{"name": name, "mountPath": inside, "readOnly": true})
		volumes = append(volumes, object{"name": name, "hostPath": object{"path": at}})
	}
	c := spec["containers"].([]object)[0]
	c["volumeMounts"], spec["volumes"] = mounts, volumes
	c["resources"] = object{"limits": object{"cpu": apacheLimit, "memory": "256Mi"}, "requests": object{"cpu": apacheLimit, "memory": "256Mi"}}
	apply(t, o)
	p := &pod{t: t, namespace: "default", name: w.name}
	t.Cleanup(p.delete)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(output(kubectlCommand("logs", p.name)))
		}
	})
	p.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/"+p.name)
	p.find()
	return p
}

// dialInside opens a connection in the cluster's network namespace: a socket belongs to that of the thread that makes it.
func dialInside(ctx context.Context, network, address string) (net.Conn, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer own.Close()
	theirs, err := os.Open(strings.TrimPrefix(inside, "--net="))
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	// Making the socket, and so Control, is this goroutine's: with an IP address nothing else is started.
	dialer := net.Dialer{Timeout: 5 * time.Second, FallbackDelay: -1}
	if err := unix.Setns(int(theirs.Fd()), syscall.CLONE_NEWNET); err != nil {
		return nil, err
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if back := unix.Setns(int(own.Fd()), syscall.CLONE_NEWNET); back != nil {
		panic(back) // the thread would go on in the other namespace
	}
	return conn, err
}

// served is what became of a while of requests.
type served struct {
	throttled, use float64 // of the periods; of the limit
	p50, p99       time.Duration
	errors         int
}

// serve sends requests as wrk2 does: each is due at a time of its own, and its latency counts from then.
func (p *pod) serve(seed uint64) served {
	p.t.Helper()
	url := "http://" + strings.TrimSpace(p.kubectl("get", "pod", p.name, "-o", "jsonpath={.status.podIP}")) + ":8010/file.txt"
	client := &http.Client{Transport: &http.Transport{DialContext: dialInside, DisableCompression: true, MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	send := func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept-Encoding", "deflate, gzip")
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK || res.Header.Get("Content-Encoding") == "" {
			return fmt.Errorf("%s, %v", res.Status, err)
		}
		return nil
	}
	at := p.containers["apache"]
	before, err := cluster.groups.Stat(at)
	if err != nil {
		p.t.Fatal(err)
	}
	used, _ := cluster.groups.Usage(at)
	out := load.Run(p.t.Context(), load.Poisson(seed, 1, apacheRate, apacheTime), load.Bounds{Timeout: 10 * time.Second, Open: 64}, send)
	after, err := cluster.groups.Stat(at)
	if err != nil {
		p.t.Fatal(err)
	}
	now, _ := cluster.groups.Usage(at)
	if out.Errors > 0 {
		p.t.Errorf("%d errors: %v", out.Errors, out.Cause)
	}
	return served{throttled: float64(after.Throttled-before.Throttled) / float64(max(1, after.Periods-before.Periods)),
		use: float64(now-used) / float64(apacheTime) / 0.5, p50: out.Latency.Quantile(0.5), p99: out.Latency.Quantile(0.99), errors: out.Errors}
}

// TestApacheDemo: the published table. With the policy off by its annotation, and on by the same, live.
func TestApacheDemo(t *testing.T) {
	p := apacheDemo(t)
	before := files(t)
	a := follower(t, "none")
	p.serve(1) // warm
	off := p.serve(2)
	p.annotate(annotation + `={"policy": "auto"}`)
	eventually(t, wait, func() string { return p.helped("apache", 50*ms) })
	on := p.serve(2)
	a.stop(syscall.SIGTERM)
	same(t, before)
	t.Logf("\n%-28s %14s %14s\n%-28s %14v %14v\n%-28s %14v %14v\n%-28s %13.1f%% %13.1f%%\n%-28s %13.1f%% %13.1f%%", "apache-demo, limit "+apacheLimit, "none", "auto",
		"RT p50", off.p50.Round(ms/10), on.p50.Round(ms/10), "RT p99", off.p99.Round(ms/10), on.p99.Round(ms/10),
		"CPU throttled ratio", 100*off.throttled, 100*on.throttled, "pod CPU use of its limit", 100*off.use, 100*on.use)
	if off.throttled < 0.01 {
		t.Fatalf("%.1f %% of the periods throttled without burst: the scenario proves nothing", 100*off.throttled)
	}
	if on.throttled > off.throttled/2 {
		t.Errorf("throttled in %.1f %% of the periods, without burst in %.1f %%", 100*on.throttled, 100*off.throttled)
	}
}
