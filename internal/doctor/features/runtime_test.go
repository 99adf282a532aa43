package features

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/cgroup"
)

// TestProbeNRI: absent, off and on are distinguished.
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
	is := func(v string) func(string) (string, error) { return func(string) (string, error) { return v, nil } }
	none := func(string) (string, error) { return "", errors.New("no such process") }
	for _, c := range []struct {
		name, socket string
		version      func(string) (string, error)
		want         cgroup.State
		says         string
	}{
		{"on", socket, none, cgroup.Yes, "on: "},
		{"absent", filepath.Join(dir, "none"), is("1.6.20~ds1"), cgroup.No, "absent: containerd 1.6.20~ds1"},
		{"off", filepath.Join(dir, "none"), is("1.7.28"), cgroup.No, "off: containerd 1.7.28"},
		{"off in 2.x", filepath.Join(dir, "none"), is("2.2.9"), cgroup.No, "off: containerd 2.2.9"},
		{"no runtime", filepath.Join(dir, "none"), none, cgroup.Unknown, "no containerd is found"},
	} {
		if f := runtime(c.socket, c.version); f.State != c.want || !strings.Contains(f.Detail, c.says) {
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

// TestContainerdVersion: anybody may call a process containerd.
// The program of one that is not the node's own is not run.
func TestContainerdVersion(t *testing.T) {
	const own, others = "mnt:[1]", "mnt:[2]"
	for name, c := range map[string]struct{ comm, uid, files, want string }{
		"the node's":     {"containerd", "0\t0\t0\t0", own, "9.9.9"},
		"a user's":       {"containerd", "1000\t1000\t1000\t1000", own, ""},
		"a setuid one":   {"containerd", "1000\t0\t0\t0", own, ""},
		"in a container": {"containerd", "0\t0\t0\t0", others, ""},
		"another":        {"containerd-shim", "0\t0\t0\t0", own, ""},
	} {
		t.Run(name, func(t *testing.T) {
			proc := t.TempDir()
			ran := filepath.Join(proc, "ran")
			for file, text := range map[string]string{"42/comm": c.comm + "\n",
				"42/status": "Name:\t" + c.comm + "\nUid:\t" + c.uid + "\nGid:\t0\n",
				"42/exe":    "#!/bin/sh\ntouch " + ran + "\necho containerd github.com/containerd v9.9.9\n"} {
				file = filepath.Join(proc, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
					os.WriteFile(file, []byte(text), 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			for pid, files := range map[string]string{"1": own, "42": c.files} {
				ns := filepath.Join(proc, pid, "ns")
				if err := errors.Join(os.MkdirAll(ns, 0o755), os.Symlink(files, filepath.Join(ns, "mnt"))); err != nil {
					t.Fatal(err)
				}
			}
			got, err := containerdVersion(proc)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
			if _, err := os.Stat(ran); (err == nil) != (c.want != "") {
				t.Errorf("its program was run: %v, want %v", err == nil, c.want != "")
			}
		})
	}
}
