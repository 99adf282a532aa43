package features

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/doctor"
)

// runtime finds out whether the runtime calls plugins before it changes a limit. Where the socket is closed, the
// version of the running containerd says whether NRI is absent or off.
func runtime(socket string, version func(proc string) (string, error)) cgroup.Feature {
	f := cgroup.Feature{Name: doctor.FeatureNRI, State: cgroup.Yes, Detail: "on: the runtime asks before it changes " +
		"a limit (" + socket + ")", Source: "containerd " + doctor.FirstNRI + ", CRI-O 1.26"}
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		conn.Close()
		return f
	}
	v, err := version("/proc")
	switch {
	case err != nil:
		f.State, f.Detail = cgroup.Unknown, fmt.Sprintf("%s is closed, and no containerd is found: %v", socket, err)
	case olderThan(v, doctor.FirstNRI):
		f.State, f.Detail = cgroup.No, fmt.Sprintf("absent: containerd %s has none, %s is the first", v,
			doctor.FirstNRI)
	default:
		f.State, f.Detail = cgroup.No, fmt.Sprintf("off: containerd %s has it, but %s is closed", v, socket)
	}
	return f
}

// olderThan compares the first two numbers of versions such as "v2.2.9" and "1.6.20~ds1".
func olderThan(version, first string) bool {
	number := func(v string) int {
		var major, minor int
		if n, _ := fmt.Sscanf(strings.TrimPrefix(v, "v"), "%d.%d", &major, &minor); n != 2 {
			return 0
		}
		return major<<16 | minor
	}
	return number(version) < number(first)
}

// containerdVersion runs the program of a running containerd, below /proc, with --version. Any user may give a process
// that name, and the doctor is root: so it runs only the program of a process of root that has the file system of
// process 1.
func containerdVersion(proc string) (string, error) {
	names, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "comm"))
	if err != nil {
		return "", err
	}
	for _, name := range names {
		dir := filepath.Dir(name)
		if text, err := os.ReadFile(name); err != nil || strings.TrimSpace(string(text)) != "containerd" ||
			!ofRoot(proc, dir) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, filepath.Join(dir, "exe"), "--version").Output()
		if err != nil {
			return "", fmt.Errorf("containerd --version: %w", err)
		}
		return versionIn(string(out))
	}
	return "", errors.New("no such process of root")
}

// ofRoot says whether a process is root's, and in no container.
func ofRoot(proc, dir string) bool {
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil || !strings.Contains(string(status), "\nUid:\t0\t0\t0\t0\n") {
		return false
	}
	files, err1 := os.Readlink(filepath.Join(dir, "ns", "mnt"))
	first, err2 := os.Readlink(filepath.Join(proc, "1", "ns", "mnt"))
	return err1 == nil && err2 == nil && files == first
}

// versionIn is the third word of "containerd github.com/containerd/containerd/v2 v2.2.9 HASH".
func versionIn(text string) (string, error) {
	if words := strings.Fields(text); len(words) >= 3 {
		return cmp.Or(strings.TrimPrefix(words[2], "v"), "unknown"), nil
	}
	return "", fmt.Errorf("containerd --version: %q is not understood", text)
}
