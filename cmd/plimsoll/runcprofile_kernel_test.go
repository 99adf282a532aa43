package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/logbook"
)

// image makes what runc runs: one of our programs and nothing else, as in the image, with the capabilities that the
// chart gives the agent, and a seccomp profile.
func (s *shipped) image(dir, group, profile string, args ...string) {
	s.t.Helper()
	program := "/" + filepath.Base(s.binary)
	for _, made := range []string{"rootfs/proc", "rootfs/host/cgroup", "rootfs/run"} {
		if err := os.MkdirAll(filepath.Join(dir, made), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := copyFile(filepath.Join(dir, "rootfs", program), s.binary); err != nil {
		s.t.Fatal(err)
	}
	type object = map[string]any
	bind := func(from, to string) object {
		return object{"destination": to, "source": from, "type": "bind", "options": []string{"rbind", "rw"}}
	}
	caps := []string{"CAP_BPF", "CAP_PERFMON", "CAP_SYS_NICE"}
	spec := object{"ociVersion": "1.0.2",
		"process": object{"terminal": false, "user": object{"uid": 0, "gid": 0},
			"args": append([]string{program}, args...), "cwd": "/", "noNewPrivileges": true,
			"capabilities": object{"bounding": caps, "effective": caps, "permitted": caps}},
		"root": object{"path": "rootfs", "readonly": true},
		"mounts": []object{{"destination": "/proc", "type": "proc", "source": "proc"},
			bind(cgrouptest.Root(), "/host/cgroup"),
			{"destination": "/run", "type": "tmpfs", "source": "tmpfs"},
			bind(filepath.Dir(s.config), filepath.Dir(s.config)),
			{"destination": "/sys", "type": "bind", "source": "/sys", "options": []string{"rbind", "ro"}}},
		"linux": object{"cgroupsPath": group, "namespaces": []object{{"type": "mount"}},
			"seccomp": json.RawMessage(profile)}}
	data, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestRuncTakesTheProfiles: runc, which has the C library for profiles that all container runtimes have, starts each
// program with its profile; the agent gets throttle events.
func TestRuncTakesTheProfiles(t *testing.T) {
	if _, err := exec.LookPath("runc"); err != nil {
		cgrouptest.Skip(t, "%v; hint: make setup", err)
	}
	base := cgrouptest.New(t)
	t.Cleanup(func() { leftByRunc(t, base) })
	for _, c := range []struct{ profile, says string }{{"plimsoll", "msg=running"}, {"plimsoll-serve", "msg=serving"},
		{"plimsoll-lease", "msg=watching"}} {
		t.Run(c.profile, func(t *testing.T) {
			s := newShipped(t)
			s.write("strategy: {policy: none}\n")
			args := map[string][]string{
				"plimsoll": {"run", "--config", s.config, "--listen", "", "--cgroup-root", "/host/cgroup",
					"--state-dir", s.state},
				"plimsoll-serve": {"serve", "--listen", "127.0.0.1:0", "--state-dir", s.state},
				"plimsoll-lease": {"--cgroup-root", "/host/cgroup", "--state-dir", s.state},
			}[c.profile]
			status := *s
			if c.profile == "plimsoll-lease" {
				s.binary = filepath.Join(filepath.Dir(s.binary), c.profile)
			}
			dir, name := t.TempDir(), fmt.Sprintf("plimsoll-%d-%s", os.Getpid(), c.profile)
			s.image(dir, filepath.Join(base.Path, name), shippedProfile(t, c.profile), args...)
			l := &daemon{t: t, cmd: exec.Command("runc", "--root", filepath.Join(dir, "runc"), "run", "--bundle", dir,
				name), log: &logbook.Book{}, done: make(chan struct{})}
			l.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
			l.begin()
			if !l.says(c.says) {
				t.Fatalf("it does not start:\n%s", l.log)
			}
			if c.profile == "plimsoll" {
				if e := status.status().Events; !e.Subscribed {
					t.Errorf("no throttle events: %s", e.Why)
				}
			}
			l.stop(syscall.SIGTERM)
			unrefused(t, c.profile, l.log.String())
		})
	}
}
