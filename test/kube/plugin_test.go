//go:build kube

package kube

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"plimsoll/internal/report"
)

// plugin is kubectl plimsoll.
func plugin(t *testing.T, args ...string) string {
	t.Helper()
	out, err := pluginSays(t, args...)
	if err != nil {
		t.Fatal(err, out)
	}
	return out
}

func pluginSays(t *testing.T, args ...string) (string, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "kubectl-plimsoll")
	if err := os.Symlink(cluster.binary, name); err != nil {
		t.Fatal(err)
	}
	front := []string{inside, name, "--kubeconfig", filepath.Join(scratch, "pki/admin.kubeconfig")}
	return output(exec.Command("nsenter", append(front, args...)...))
}

func answer[T report.Page](t *testing.T, args ...string) T {
	t.Helper()
	c, err := answered[T](t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answered fails while the agent stands by: another one's end is a moment before that.
func answered[T report.Page](t *testing.T, args ...string) (T, error) {
	t.Helper()
	var c report.Cluster[T]
	out, err := pluginSays(t, append(args, "--json")...)
	if err != nil {
		return *new(T), fmt.Errorf("%w: %s", err, out)
	}
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Nodes) != 1 || c.Nodes[0].Node != nodeName {
		t.Fatalf("answers of %+v", c.Nodes)
	}
	return *c.Nodes[0].Answer, nil
}
