package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"plimsoll/internal/config"
	"plimsoll/internal/discover/kube"
)

// kubeFlagsOf parses a command line.
func kubeFlagsOf(t *testing.T, args ...string) *kubeFlags {
	t.Helper()
	f := &kubeFlags{}
	cmd := &cobra.Command{Use: "run"}
	f.register(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestKubeConfigMaps(t *testing.T) {
	names, err := kubeFlagsOf(t).names()
	if diff := cmp.Diff(kube.Names{{Namespace: "kube-system", Name: "ack-slo-config"}}, names); diff != "" ||
		err != nil {
		t.Errorf("outside of a pod: %v, %s", err, diff)
	}
	names, err = kubeFlagsOf(t, "--kube-configmaps", "a/b,c/d", "--kube-configmaps=e/f").names()
	if diff := cmp.Diff(kube.Names{{Namespace: "a", Name: "b"}, {Namespace: "c", Name: "d"},
		{Namespace: "e", Name: "f"}}, names); diff != "" || err != nil {
		t.Errorf("%v, %s", err, diff)
	}
	for _, bad := range []string{"b", "/b", "a/", "a/b/c"} {
		if names, err := kubeFlagsOf(t, "--kube-configmaps", bad).names(); err == nil {
			t.Errorf("%q is taken as %v", bad, names)
		}
	}
}

func TestNodeName(t *testing.T) {
	t.Setenv("NODE_NAME", "from-env")
	if n, err := kubeFlagsOf(t).nodeName(); n != "from-env" || err != nil {
		t.Errorf("%q, %v", n, err)
	}
	if n, err := kubeFlagsOf(t, "--node-name", "from-flag").nodeName(); n != "from-flag" || err != nil {
		t.Errorf("%q, %v", n, err)
	}
	t.Setenv("NODE_NAME", "")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := kubeFlagsOf(t).nodeName(); n != strings.ToLower(host) || err != nil {
		t.Errorf("%q, %v", n, err)
	}
}

// Without --kube nothing of it is made, and nothing stands between the agent and what was found.
func TestWithoutKube(t *testing.T) {
	c, err := kubeFlagsOf(t, "--kubeconfig", "/nonexistent").open(nil, nil, &config.File{},
		slog.New(slog.DiscardHandler))
	if c != nil || err != nil {
		t.Fatalf("%v, %v", c, err)
	}
	c.Note(os.ErrInvalid)
	if c.Run(t.Context()) != nil {
		t.Error("something of it runs")
	}
}

func TestKubeNeedsACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // not in a pod
	bad := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(bad, []byte("kind: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--kube"}, {"--kube", "--kubeconfig", "/nonexistent"},
		{"--kube", "--kubeconfig", bad}, {"--kube", "--kube-configmaps", "x"}} {
		if c, err := kubeFlagsOf(t, args...).open(nil, nil, &config.File{}, slog.New(slog.DiscardHandler)); c != nil ||
			err == nil {
			t.Errorf("%q: %v, %v", args, c, err)
		}
	}
}
