//go:build kube

package kube

import (
	"os/exec"
	"strings"
	"testing"
)

// TestPagesAreForReaders: on the pod's address, over TLS, the pages are for accounts that may get them in the cluster,
// and the probes are open and say nothing. The agent's container has no port,
// and the one that serves has no capability.
func TestPagesAreForReaders(t *testing.T) {
	d := deploy(t)
	self := d.start("plimsoll", "agent")
	address := strings.TrimSpace(self.kubectl("get", "pod", "agent", "-o", "jsonpath={.status.podIP}")) + ":12779"
	ask := func(url, token string) string {
		t.Helper()
		args := []string{inside, "curl", "-sk", "--max-time", "10", "-o", "/dev/null", "-w", "%{http_code}"}
		if token != "" {
			args = append(args, "-H", "Authorization: Bearer "+token)
		}
		code, _ := output(exec.Command("nsenter", append(args, url)...)) // where nobody answers, the code is 000
		return strings.TrimSpace(code)
	}
	account := func(name string) (token string) {
		self.kubectl("create", "serviceaccount", name)
		t.Cleanup(func() { self.kubectl("delete", "serviceaccount", name) })
		return strings.TrimSpace(self.kubectl("create", "token", name))
	}
	stranger, scraper := account("stranger"), account("scraper")
	kubectl(t, "create", "clusterrolebinding", "scraper", "--clusterrole=plimsoll-reader",
		"--serviceaccount="+agents+":scraper")
	t.Cleanup(func() { kubectl(t, "delete", "clusterrolebinding", "scraper") })
	for _, c := range []struct{ url, token, want string }{
		{"https://" + address + "/metrics", "", "401"},
		{"https://" + address + "/metrics", "made-up", "401"},
		{"https://" + address + "/metrics", stranger, "403"},
		{"https://" + address + "/", stranger, "403"},
		{"https://" + address + "/api/v1/status", stranger, "403"}, // every account may get /api/* in the cluster
		{"https://" + address + "/api/v1/report", stranger, "403"},
		{"https://" + address + "/api/v1/view", stranger, "403"},
		{"https://" + address + "/api/v1/live", stranger, "403"},
		{"https://" + address + "/api/v1/container", stranger, "403"},
		{"https://" + address + "/api/v1/snapshot", stranger, "403"},
		{"https://" + address + "/metrics", scraper, "200"},
		{"https://" + address + "/api/v1/status", scraper, "200"},
		{"https://" + address + "/api/v1/plan", scraper, "404"},
		{"https://" + address + "/readyz", "", "200"},
		{"https://" + address + "/livez", "", "200"},
		{"http://" + address + "/metrics", scraper, "400"},                                  // no TLS
		{"http://" + strings.Replace(address, "12779", "12780", 1) + "/metrics", "", "000"}, // the loopback interface's
	} {
		if got := ask(c.url, c.token); got != c.want {
			t.Errorf("%s with a token of %d bytes: %s, want %s", c.url, len(c.token), got, c.want)
		}
	}
	self.end()
}
