//go:build kube

package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/load"
)

// The published apache-demo: a pod of limit 4 and 24 requests a second, each a text of 1 MiB compressed anew, which
// used a third of the limit. Here it has an eighth of the limit, and as much of that in use, which two CPUs can serve.
const (
	apacheLimit       = "500m"
	apacheCPUs        = 0.5
	apacheRate        = 6.0
	apacheConnections = 64 // published: 12
)

// apacheDemo is the pod.
func apacheDemo(t *testing.T) *pod {
	t.Helper()
	return apachePod(t, "apache-demo", apacheLimit, map[string]string{annotation: `{"policy": "none"}`})
}

// apachePod has this limit, or none. Apache, and what it needs, are the host's: there is no registry.
func apachePod(t *testing.T, name, limit string, annotations map[string]string) *pod {
	t.Helper()
	dir := filepath.Join(scratch, "apache")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	conf := []string{`ServerName demo`, `DefaultRuntimeDir /tmp`, `PidFile /tmp/pid`, `ErrorLog /dev/stderr`,
		`Listen 8010`, `User www-data`, `Group www-data`,
		`ServerLimit 1`, `StartServers 1`, `ThreadsPerChild 64`, `MaxRequestWorkers 64`, `KeepAlive On`,
		`MaxKeepAliveRequests 0`, `KeepAliveTimeout 600`,
		`TypesConfig /dev/null`, `AddType text/plain .txt`}
	for _, m := range []string{"mpm_event", "authz_core", "mime", "filter", "deflate"} {
		conf = append(conf, "LoadModule "+m+"_module /usr/lib/apache2/modules/mod_"+m+".so")
	}
	conf = append(conf, `AddOutputFilterByType DEFLATE text/plain`, `DocumentRoot /demo`, `<Directory /demo>`,
		`Require all granted`, `</Directory>`, "")
	for name, text := range map[string]string{"apache.conf": strings.Join(conf, "\n"),
		"file.txt": string(load.Text(1, 1<<20))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return start(t, want{name: name, annotations: annotations,
		containers: []container{{"apache", apacheLimit, limit,
			[]string{"/usr/sbin/apache2", "-f", "/demo/apache.conf", "-D", "FOREGROUND"}}}},
		func(spec object) {
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
			limits := object{"cpu": limit, "memory": "256Mi"}
			if limit == "" {
				delete(limits, "cpu")
			}
			c["volumeMounts"], spec["volumes"] = mounts, volumes
			c["resources"] = object{"limits": limits, "requests": object{"cpu": apacheLimit, "memory": "256Mi"}}
		})
}

// served is what became of requests, whenever they were sent.
type served struct {
	periods, throttled int64
	used, during       time.Duration
	latency            *load.Latencies
}

func (s *served) ratio() float64 { return float64(s.throttled) / float64(max(1, s.periods)) }

// use is of the limit.
func (s *served) use() float64 { return s.used.Seconds() / s.during.Seconds() / apacheCPUs }

// serve sends requests as wrk2 does: each is due at a time of its own, and its latency counts from then.
func (p *pod) serve(seed uint64, during time.Duration, into *served) {
	p.t.Helper()
	url := "http://" + strings.TrimSpace(p.kubectl("get", "pod", p.name, "-o", "jsonpath={.status.podIP}")) +
		":8010/file.txt"
	client := &http.Client{Transport: &http.Transport{DialContext: dialInside, DisableCompression: true,
		MaxIdleConnsPerHost: apacheConnections}}
	defer client.CloseIdleConnections()
	before, used := p.counters("apache")
	out := load.Run(p.t.Context(), load.Poisson(seed, 1, apacheRate, during),
		load.Bounds{Timeout: 10 * time.Second, Open: apacheConnections},
		func(ctx context.Context) error { return compressed(ctx, client, url) })
	after, now := p.counters("apache")
	if out.Errors > 0 {
		p.t.Errorf("%d errors: %v", out.Errors, out.Cause)
	}
	into.periods += after.Periods - before.Periods
	into.throttled += after.Throttled - before.Throttled
	into.used += now - used
	into.during += during
	into.latency.Merge(out.Latency)
}

func (p *pod) counters(name string) (cpu.Counters, time.Duration) {
	p.t.Helper()
	stat, err := cluster.groups.Stat(p.containers[name])
	if err != nil {
		p.t.Fatal(err)
	}
	used, err := cluster.groups.Usage(p.containers[name])
	if err != nil {
		p.t.Fatal(err)
	}
	return stat, used
}

// compressed requests the file as the published experiments did.
func compressed(ctx context.Context, client *http.Client, url string) error {
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
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK ||
		res.Header.Get("Content-Encoding") == "" {
		return fmt.Errorf("%s, %v", res.Status, err)
	}
	return nil
}

// compare serves a while with each policy, which the pod's annotation switches, live. They take turns, so that what
// else happens on the machine falls on all of them, and each turn has the same requests for all.
func (p *pod) compare(policies []string, turn time.Duration, turns int) map[string]*served {
	p.t.Helper()
	all := map[string]*served{}
	for i := range turns {
		for _, policy := range policies {
			if all[policy] == nil {
				all[policy] = &served{latency: load.NewLatencies()}
			}
			p.annotate(fmt.Sprintf(`%s={"policy": %q}`, annotation, policy))
			time.Sleep(reaction)
			eventually(p.t, wait, func() string { return p.has(policy) })
			p.serve(uint64(i+2), turn, all[policy])
		}
	}
	return all
}

// has says what is missing until a policy that sets a burst has set it, and another has none.
func (p *pod) has(policy string) string {
	burst := strings.HasPrefix(policy, "cpuBurst") || policy == "auto"
	if b := p.limits()["apache"]; (b.Burst > 0) != burst {
		return fmt.Sprintf("%s: %v", policy, b)
	}
	return ""
}

// TestApacheDemo: the published table. With the policy off by its annotation, and on by the same, live.
// PLIMSOLL_APACHE_SECONDS is how long each policy is measured (make bench-kube): then it is the table, of all policies,
// in place of a test of two.
func TestApacheDemo(t *testing.T) {
	if seconds, err := strconv.Atoi(os.Getenv("PLIMSOLL_APACHE_SECONDS")); err == nil && seconds > 0 {
		apacheTable(t, time.Duration(seconds)*time.Second)
		return
	}
	p := apacheDemo(t)
	before := files(t)
	a := follower(t, "none")
	p.serve(1, 5*time.Second, &served{latency: load.NewLatencies()}) // warm
	all := p.compare([]string{"none", "auto"}, 10*time.Second, 1)
	a.stop(syscall.SIGTERM)
	same(t, before)
	off, on := all["none"].ratio(), all["auto"].ratio()
	t.Logf("\n%s", tableOf([]string{"none", "auto"}, all))
	if off < 0.01 {
		t.Fatalf("%.1f %% of the periods throttled without burst: the scenario proves nothing", 100*off)
	}
	if on > off/2 {
		t.Errorf("throttled in %.1f %% of the periods, without burst in %.1f %%", 100*on, 100*off)
	}
}

// apacheTable measures all policies with the defaults of all parameters.
func apacheTable(t *testing.T, each time.Duration) {
	const turn = 30 * time.Second
	p := apacheDemo(t)
	a := newAgent(t, "strategy: {policy: none}\n", "--kube", "--kubeconfig",
		filepath.Join(scratch, "pki/admin.kubeconfig"), "--node-name", nodeName)
	a.busy = true // as everywhere
	a.start()
	// until it is no new container any more (startupSeconds)
	p.serve(1, 60*time.Second, &served{latency: load.NewLatencies()})
	policies := []string{"none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"}
	all := p.compare(policies, min(turn, each), int(max(1, each/turn)))
	s := a.status()
	fmt.Printf("\napache-demo in a pod on a real kubelet (%s): limit %s, %g requests a second, %v for each policy in "+
		"turns of %v; kernel %s, cgroup %s, %d CPUs\n\n%s", serverVersion(t), apacheLimit, apacheRate,
		all["none"].during, min(turn, each), s.Kernel, s.Cgroup, s.Node.CPUs, tableOf(policies, all))
}

// tableOf is the form of the published tables of results, which stand beside it.
func tableOf(policies []string, all map[string]*served) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(what, published string, of func(*served) string) {
		fmt.Fprintf(w, "%s\t%s\t", what, published)
		for _, p := range policies {
			fmt.Fprintf(w, "%s\t", of(all[p]))
		}
		fmt.Fprintln(w)
	}
	latency := func(q float64) func(*served) string {
		return func(s *served) string {
			now, none := s.latency.Quantile(q), all["none"].latency.Quantile(q)
			text := fmt.Sprintf("%.1f ms", float64(now)/float64(ms))
			if s != all["none"] {
				text += fmt.Sprintf(" (%+.0f %%)", 100*(float64(now)/float64(none)-1))
			}
			return text
		}
	}
	fmt.Fprintf(w, "\tAlibaba Cloud Linux\tCentOS\t%s\t\n", strings.Join(policies, "\t"))
	fmt.Fprintf(w, "\tnone -> auto\tnone -> auto\t%s\n", strings.Repeat("\t", len(policies)))
	line("apache RT-p50", "-\t-", latency(0.5))
	line("apache RT-p90", "-\t-", latency(0.9))
	line("apache RT-p99", "107.37 -> 67.18 ms (-37.4 %)\t111.69 -> 71.30 ms (-36.2 %)", latency(0.99))
	line("CPU Throttled Ratio", "33.3 -> 0 %\t33 -> 0 %",
		func(s *served) string { return fmt.Sprintf("%.1f %%", 100*s.ratio()) })
	line("average pod CPU use", "31.8 -> 32.6 %\t32.5 -> 33.8 %",
		func(s *served) string { return fmt.Sprintf("%.1f %%", 100*s.use()) })
	line("requests", "-\t-", func(s *served) string { return strconv.FormatInt(s.latency.Count(), 10) })
	w.Flush() // into memory: cannot fail
	return b.String()
}
