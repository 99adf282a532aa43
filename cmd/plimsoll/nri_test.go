package main

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/agent"
	"plimsoll/internal/cgroup"
)

// TestProbeNRI: absent is told from off, and both from on.
func TestProbeNRI(t *testing.T) {
	dir, err := os.MkdirTemp("", "nri") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	is := func(v string) func() (string, error) { return func() (string, error) { return v, nil } }
	none := func() (string, error) { return "", errors.New("no such process") }
	for _, c := range []struct {
		name, socket string
		version      func() (string, error)
		want         cgroup.State
		says         string
	}{
		{"on", socket, none, cgroup.Yes, "on: "},
		{"absent", filepath.Join(dir, "none"), is("1.6.20~ds1"), cgroup.No, "absent: containerd 1.6.20~ds1"},
		{"off", filepath.Join(dir, "none"), is("1.7.28"), cgroup.No, "off: containerd 1.7.28"},
		{"off in 2.x", filepath.Join(dir, "none"), is("2.2.9"), cgroup.No, "off: containerd 2.2.9"},
		{"no runtime", filepath.Join(dir, "none"), none, cgroup.Unknown, "no containerd is to be seen"},
	} {
		if f := probeNRI(c.socket, c.version); f.State != c.want || !strings.Contains(f.Detail, c.says) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestVersionIn(t *testing.T) {
	for text, want := range map[string]string{
		"containerd github.com/containerd/containerd/v2 v2.2.9 abc\n":              "2.2.9",
		"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+b1\n": "1.6.20~ds1",
		"containerd": "",
	} {
		if got, err := versionIn(text); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// TestNRIIsWanted: with Kubernetes, or where it is asked for by name.
func TestNRIIsWanted(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, false},
		{[]string{"--kube"}, true},
		{[]string{"--kube", "--nri-socket="}, false},
		{[]string{"--nri-socket=/x"}, true},
	} {
		f := kubeFlagsOf(t, c.args...)
		p := f.nri.open(f.on, &agent.Agent{}, slog.New(slog.DiscardHandler))
		if (p != nil) != c.want || (nriStatus(p) != nil) != c.want {
			t.Errorf("%q: %v", c.args, p)
		}
	}
}
