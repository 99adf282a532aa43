package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// CPUThrottlingHigh as kubernetes-mixin has it, in the labels that it leaves and in when it fires: the labels of the
// container, and instance and service of the kubelet.
const throttlingHigh = `
groups:
  - name: stand-in
    rules:
      - alert: CPUThrottlingHigh
        expr: >-
          sum by (namespace, pod, container, instance, service) (increase(container_cpu_cfs_throttled_periods_total{container!=""}[5m]))
          > 0.25 * sum by (namespace, pod, container, instance, service) (increase(container_cpu_cfs_periods_total{container!=""}[5m]))
        for: 15m
        labels: {severity: info}
`

// throttled is a container of which 30 % of the periods end throttled, by cAdvisor's count and by the agent's. A minute
// has 600 periods; wall is what the agent says of the time lost in one.
func throttled(l labels, wall string) []series {
	cadvisor := labels{"namespace": l["namespace"], "pod": l["pod"], "container": l["container"],
		"instance": "10.0.0.1:10250", "service": "kubelet",
		"job": "kubelet", "metrics_path": "/metrics/cadvisor", "node": "n1", "id": "/kubepods/" +
			l["pod"], "image": "i", "name": "n"}
	return []series{{cadvisor.named("container_cpu_cfs_periods_total"), "0+600x40"},
		{cadvisor.named("container_cpu_cfs_throttled_periods_total"), "0+180x40"},
		{l.named("plimsoll_container_periods_total"), "0+600x40"},
		{l.named("plimsoll_container_throttled_periods_total"), "0+180x40"},
		{l.named("plimsoll_container_throttled_wall_seconds_total"), wall}}
}

// fires are the labels of the two alerts of a container.
func fires(l labels) (high, calm labels) {
	high = labels{"severity": "info", "namespace": l["namespace"], "pod": l["pod"], "container": l["container"],
		"instance": "10.0.0.1:10250", "service": "kubelet"}
	return high, l.and(labels{"severity": "none"})
}

// TestCPUThrottlingHighIsInhibited: where a container is throttled and loses no time, PlimsollNoTimeLost fires before
// CPUThrottlingHigh does, with the same namespace, pod and container, and Alertmanager holds the latter back by the
// lines of docs/REFERENCE.md. For one that loses time, and one of which the agent says nothing any more, it does not.
func TestCPUThrottlingHighIsInhibited(t *testing.T) {
	fine, slow, lost := agentLabels("shop", "web-0", "app"), agentLabels("shop", "web-1", "app"), agentLabels("shop",
		"web-2", "app")
	input := throttled(fine, "0+0.1x40")                   // 0.1 s in 180 periods
	input = append(input, throttled(slow, "0+9x40")...)    // 50 ms a throttle
	input = append(input, throttled(lost, "0x12 _x28")...) // stale: see below
	for i := len(input) - 3; i < len(input); i++ {
		input[i].Values = strings.ReplaceAll(input[i].Values, "x40", "x12") + " stale"
	}
	fineHigh, fineCalm := fires(fine)
	slowHigh, _ := fires(slow)
	lostHigh, lostCalm := fires(lost)
	promtool(t, throttlingHigh, ruleTest{Name: "who fires", Interval: "1m", Series: input, Alerts: []alertTest{
		{"4m", "PlimsollNoTimeLost", nil},
		{"10m", "PlimsollNoTimeLost", []firing{{fineCalm}, {lostCalm}}},
		{"15m", "CPUThrottlingHigh", nil},
		{"20m", "PlimsollNoTimeLost", []firing{{fineCalm}}},
		{"20m", "CPUThrottlingHigh", []firing{{fineHigh}, {slowHigh}, {lostHigh}}},
	}})

	am := startAlertmanager(t, snippet(t))
	am.post(t, "PlimsollNoTimeLost", fineCalm)
	am.post(t, "CPUThrottlingHigh", fineHigh, slowHigh, lostHigh)
	got := am.inhibited(t, "CPUThrottlingHigh web-0")
	for pod, want := range map[string]bool{"web-0": true, "web-1": false, "web-2": false} {
		if got["CPUThrottlingHigh "+pod] != want {
			t.Errorf("CPUThrottlingHigh of %s: inhibited %v, want %v", pod, got["CPUThrottlingHigh "+pod], want)
		}
	}
	if got["PlimsollNoTimeLost web-0"] {
		t.Error("PlimsollNoTimeLost inhibits itself")
	}
}

// snippet are the lines of docs/REFERENCE.md.
func snippet(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\ninhibit_rules:\n")
	lines, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/REFERENCE.md has no inhibit_rules")
	}
	return "inhibit_rules:\n" + lines
}

// alertmanager is a real one, on the loopback.
type alertmanager struct{ url string }

func startAlertmanager(t *testing.T, rules string) alertmanager {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, []byte("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"+rules),
		0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, "amtool", "check-config", file)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	cmd := exec.Command("prometheus-alertmanager", "--config.file", file, "--storage.path", dir, "--web.listen-address",
		address, "--cluster.listen-address", "")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; hint: bash test/setup.sh", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	am := alertmanager{"http://" + address}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if answer, err := http.Get(am.url + "/-/ready"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return am
			}
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("alertmanager does not answer:\n%s", log.String())
		}
	}
}

// post tells of alerts, as Prometheus does.
func (am alertmanager) post(t *testing.T, name string, list ...labels) {
	t.Helper()
	var alerts []map[string]any
	for _, l := range list {
		alerts = append(alerts, map[string]any{"labels": l.and(labels{"alertname": name}), "startsAt": time.Now()})
	}
	body, err := json.Marshal(alerts)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(am.url+"/api/v2/alerts", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("post %s: %s", name, answer.Status)
	}
}

// inhibited says for each alert, by name and pod, whether another one holds it back. Alertmanager takes note of an
// alert that inhibits others a moment after it has taken it: the first of them is waited for.
func (am alertmanager) inhibited(t *testing.T, first string) map[string]bool {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		var alerts []struct {
			Labels labels
			Status struct {
				State       string
				InhibitedBy []string
			}
		}
		answer, err := http.Get(am.url + "/api/v2/alerts")
		if err == nil {
			err = json.NewDecoder(answer.Body).Decode(&alerts)
			answer.Body.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		states := map[string]bool{}
		for _, a := range alerts {
			states[a.Labels["alertname"]+" "+a.Labels["pod"]] = a.Status.State == "suppressed" &&
				len(a.Status.InhibitedBy) > 0
		}
		if states[first] {
			return states
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not inhibited: %v", first, alerts)
		}
	}
}
