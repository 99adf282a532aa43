package cgroupfs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
	"plimsoll/internal/workload"
)

// engine is a real Docker engine (test/docker).
type engine struct {
	t    *testing.T
	host string
	dir  string
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	for _, file := range []string{"/usr/sbin/dockerd", "/usr/bin/docker", "/bin/busybox"} {
		if _, err := os.Stat(file); err != nil {
			cgrouptest.Skip(t, "no Docker (apt-get install docker.io busybox-static): %v", err)
		}
	}
	cgrouptest.New(t) // groups can be made here
	e := &engine{t: t, dir: filepath.Join(t.TempDir(), "docker")}
	t.Cleanup(func() {
		if out, err := exec.Command("../../../test/docker/down.sh", e.dir).CombinedOutput(); err != nil {
			t.Errorf("down.sh: %v\n%s", err, out)
		}
	})
	// The engine goes down when this end of the pipe is closed, also because the test was killed.
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	e.host = e.run(in, "../../../test/docker/up.sh", e.dir)
	in.Close()
	return e
}

func (e *engine) run(stdin *os.File, name string, args ...string) string {
	e.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+e.host)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		e.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

func (e *engine) docker(args ...string) string {
	e.t.Helper()
	return e.run(nil, "/usr/bin/docker", args...)
}

func (e *engine) start(name, cpus string) (id string) {
	e.t.Helper()
	return e.docker("run", "-d", "--name", name, "--network", "none", "--cpus", cpus, "busybox", "/bin/sleep", "600")
}

// scan runs a Scanner whose only source is the directory of the engine.
func (e *engine) scan() *Scanner {
	e.t.Helper()
	fsys := cgroup.NewDir(cgrouptest.Root())
	tree, err := cgroup.Detect(fsys)
	if err != nil {
		e.t.Fatal(err)
	}
	s, err := New(tree, cgrouptest.Root(), Options{Every: time.Hour, Sources: Sources{
		Docker: []string{filepath.Join(e.dir, "root/containers")},
		Runc:   []string{filepath.Join(e.dir, "exec/runtime-runc/*/{id}/state.json")},
	}})
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	e.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			e.t.Error(err)
		}
		fsys.Close()
	})
	return s
}

// await waits until the container is known and satisfies the condition.
func (e *engine) await(s *Scanner, id, what string, wanted func(workload.Container) bool) workload.Container {
	e.t.Helper()
	var last workload.Container
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		pods, err := s.Pods()
		if err != nil {
			e.t.Fatal(err)
		}
		for _, p := range pods {
			for _, c := range p.Containers {
				if filepath.Base(c.Path) == id {
					if last = c; wanted(c) {
						return c
					}
				}
			}
		}
	}
	e.t.Fatalf("%s: %+v, declared %+v", what, last, last.Declared)
	return last
}

func TestDockerContainers(t *testing.T) {
	e := newEngine(t)
	first := e.start("before", "0.5") // there before the Scanner
	s := e.scan()
	quota := func(q time.Duration) func(workload.Container) bool {
		return func(c workload.Container) bool {
			return c.Declared != nil && c.Declared.Bandwidth == cpu.Bandwidth{Quota: q, Period: 100 * time.Millisecond}
		}
	}
	c := e.await(s, first, "the container that was there", quota(50*time.Millisecond))
	if c.Name != "before" || c.Runtime != "docker" || c.Path != "/docker/"+first {
		t.Errorf("%+v", c)
	}
	second := e.start("after", "1.5")
	c = e.await(s, second, "the container that came", quota(150*time.Millisecond))
	if c.Name != "after" || c.Declared.Source != "docker hostconfig.json" {
		t.Errorf("%+v, %+v", c, c.Declared)
	}

	e.docker("update", "--cpus", "0.7", "before")
	e.await(s, first, "after docker update", quota(70*time.Millisecond))

	e.docker("restart", "--time", "0", "after")
	again := e.await(s, second, "after docker restart",
		func(now workload.Container) bool { return now.Inode != c.Inode })
	if again.Path != c.Path || again.Name != "after" {
		t.Errorf("restarted: %+v, was %+v", again, c)
	}

	// Without Docker's own files, runc's state says the same.
	s.mu.Lock()
	s.opt.Sources.Docker = nil
	s.nodes[c.Path].facts = facts{}
	s.mu.Unlock()
	if err := s.Rescan(); err != nil {
		t.Fatal(err)
	}
	if c = e.await(s, second, "runc's state", quota(150*time.Millisecond)); c.Declared.Source != "runc state" {
		t.Errorf("%+v", c.Declared)
	}

	e.docker("rm", "-f", "before")
	for deadline := time.Now().Add(5 * time.Second); slices.Contains(s.paths(),
		"/docker/"+first); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still there: %v", s.paths())
		}
	}
}
