package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/capability"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/logbook"
)

// tryVar has a process of this binary make calls that no profile allows, and say what the kernel answers.
const tryVar = "PLIMSOLL_TEST_TRY"

// shippedProfile reads one of deploy/seccomp, which lies beside the binary in a virtual machine.
func shippedProfile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy/seccomp", name+".json"))
	if errors.Is(err, os.ErrNotExist) {
		text, err = os.ReadFile(name + ".json")
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// forbidden are calls that each profile refuses, with arguments by which they do nothing and by which the kernel
// answers otherwise than with EPERM.
func forbidden() map[string]func() error {
	call := func(number, a, b, c, d uintptr) func() error {
		return func() error {
			if _, _, errno := unix.Syscall6(number, a, b, c, d, 0, 0); errno != 0 {
				return errno
			}
			return nil
		}
	}
	const nowhere = ^uintptr(0)
	var one byte
	return map[string]func() error{
		"mount":             call(unix.SYS_MOUNT, uintptr(unsafe.Pointer(&one)), 0, 0, 0),
		"umount2":           call(unix.SYS_UMOUNT2, 0, 0, 0, 0),
		"ptrace":            call(unix.SYS_PTRACE, nowhere, 0, 0, 0),
		"init_module":       call(unix.SYS_INIT_MODULE, 0, 1, 0, 0),
		"finit_module":      call(unix.SYS_FINIT_MODULE, nowhere, 0, nowhere, 0),
		"setns":             call(unix.SYS_SETNS, nowhere, 0, 0, 0),
		"unshare":           call(unix.SYS_UNSHARE, 0, 0, 0, 0),
		"clone of a user":   call(unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_FS, 0, 0, 0),
		"process_vm_readv":  call(unix.SYS_PROCESS_VM_READV, 0, 0, 0, 0),
		"perf_event_open":   call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0),
		"open_by_handle_at": call(unix.SYS_OPEN_BY_HANDLE_AT, nowhere, 0, 0, 0),
		"keyctl":            call(unix.SYS_KEYCTL, nowhere, 0, 0, 0),
		"reboot":            call(unix.SYS_REBOOT, 0, 0, 0, 0),
		"setuid":            call(unix.SYS_SETUID, nowhere, 0, 0, 0),
		"mknodat":           call(unix.SYS_MKNODAT, nowhere, 0, 0, 0),
		"AF_PACKET":         call(unix.SYS_SOCKET, unix.AF_PACKET, nowhere, 0, 0),
		"AF_NETLINK":        call(unix.SYS_SOCKET, unix.AF_NETLINK, nowhere, 0, 0),
	}
}

// try says what the kernel answers to each call.
func try() {
	for name, call := range forbidden() {
		fmt.Printf("%s: %v\n", name, call())
	}
}

// TestProfilesRefuse: each profile refuses what none of the programs needs.
// Without a profile the kernel gives other answers.
func TestProfilesRefuse(t *testing.T) {
	answers := func(calls string) map[string]string {
		t.Helper()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience(20*time.Second))
		defer cancel()
		cmd := exec.CommandContext(ctx, self)
		if err := (confinement{Keep: everyCapability(), Calls: calls}).apply(cmd); err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, tryVar+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		said := map[string]string{}
		for line := range strings.Lines(string(out)) {
			name, answer, _ := strings.Cut(strings.TrimSpace(line), ": ")
			said[name] = answer
		}
		return said
	}
	const refused = "operation not permitted"
	cgrouptest.New(t) // skips, or fails, where the kernel's tests cannot run
	free := answers("")
	for name := range forbidden() {
		if free[name] == "" || free[name] == refused {
			t.Errorf("without a profile %s is answered by %q: the test proves nothing", name, free[name])
		}
	}
	for _, profile := range []string{"plimsoll", "plimsoll-serve", "plimsoll-lease"} {
		for name, answer := range answers(shippedProfile(t, profile)) {
			if answer != refused {
				t.Errorf("%s: %s is answered by %q", profile, name, answer)
			}
		}
	}
}

// everyCapability drops none: what is refused then is refused by the profile.
func everyCapability() []capability.Capability {
	var list []capability.Capability
	for c := range capability.Capability(64) {
		list = append(list, c)
	}
	return list
}

// unrefused fails if anything says that it was refused something.
func unrefused(t *testing.T, what, said string) {
	t.Helper()
	for _, word := range []string{"operation not permitted", "permission denied", "seccomp"} {
		if strings.Contains(said, word) {
			t.Errorf("%s says %q:\n%s", what, word, said)
		}
	}
}

// TestAgentUnderItsProfile: an agent that may make no other calls than its profile has all of its features, refills,
// reads its configuration again, and puts everything back, at its end and after kill -9;
// the commands that are run in its container work.
func TestAgentUnderItsProfile(t *testing.T) {
	g := newGranted(t)
	s := g.s
	hog := cgrouptest.New(t)
	hog.Prevail()
	hog.Limit(hogLimit)
	before, declared := files(t, hog, g.online, g.offline), files(t, hog)
	config, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	s.write(string(config) + fmt.Sprintf("  - {cgroup: %q, policy: auto}\n", hog.Path))
	profile := &confinement{Keep: capability.All(), Group: g.home.File(""), Calls: shippedProfile(t, "plimsoll")}
	s.flags = append(s.flags, "--listen", "")

	p := hog.Spin(1)[0]
	signal := func(sig syscall.Signal) {
		if err := syscall.Kill(p.PID(), sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP) // a demand that lasts is answered by a raise, and not by refills
	s.confined, s.baseline = profile, true
	agent := s.start()
	eventually(t, patience(10*time.Second), func() string { return strings.Join(g.missing(), ", ") })
	if hasBurst(hog) && g.events {
		refilled(t, s, hog, p)
	}
	signal(syscall.SIGCONT)
	changed(t, s, declared, hog)
	if err := agent.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if !agent.says("configuration loaded") {
		t.Errorf("it does not read its configuration again")
	}
	recording := filepath.Join(filepath.Dir(s.config), "r.npy")
	for _, command := range []string{"status", "report", "doctor", "plan --config " + s.config, "pause " + hog.Path,
		"resume " + hog.Path, "release " + hog.Path,
		"hold", "resume", "diagnose " + hog.Path + " --for 1s", "record " + hog.Path + " --for 1s --out " +
			recording, "restore", "resume"} {
		if strings.HasPrefix(command, "diagnose") && !g.events {
			continue
		}
		unrefused(t, command, s.answered(command))
	}
	agent.stop(syscall.SIGKILL)
	unrefused(t, "the agent", agent.log.String())
	p.Stop()
	s.unlocked("restore")
	same(t, patience(5*time.Second), before, hog, g.online, g.offline)
	again := s.start()
	eventually(t, patience(10*time.Second), func() string { return strings.Join(g.missing(), ", ") })
	again.stop(syscall.SIGTERM)
	unrefused(t, "the agent", again.log.String())
	same(t, patience(5*time.Second), before, hog, g.online, g.offline)
}

// answered runs a command, and again where a busy guest did not answer it in time.
func (s *shipped) answered(command string) string {
	s.t.Helper()
	for end := time.Now().Add(patience(5 * time.Second)); ; {
		out, err := s.run(strings.Fields(command)...)
		if err != nil && emulated() && strings.Contains(err.Error(), "gave no answer") && time.Now().Before(end) {
			continue
		}
		if err != nil {
			s.t.Errorf("%s: %v", command, err)
		}
		return out
	}
}

// refilled has a process run in spurts until the agent has answered a throttle by a refill.
func refilled(t *testing.T, s *shipped, g *cgrouptest.Group, p *cgrouptest.Process) {
	t.Helper()
	eventually(t, patience(10*time.Second), func() string {
		e := s.status().Events
		if e.Refills > 0 {
			return ""
		}
		spurt(t, g, p, 5*hogLimit, patience(400*ms)) // its burst is once its limit
		return fmt.Sprintf("no refills: %+v", e)
	})
}

// TestServeUnderItsProfile: the process that serves the network, as a user without rights, answers what it reads from
// the agent's socket.
func TestServeUnderItsProfile(t *testing.T) {
	s := newShipped(t)
	s.write("strategy: {policy: none}\n")
	dir, binary := filepath.Dir(s.config), s.binary
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	token, socket := filepath.Join(dir, "token"), filepath.Join(dir, "read.sock")
	if err := os.WriteFile(token, []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.flags = []string{"--listen", "", "--read-socket", socket, "--read-group", fmt.Sprint(nobody)}
	s.start()

	s.binary = filepath.Join(dir, "plimsoll") // where any user may run it
	if err := copyFile(s.binary, binary); err != nil {
		t.Fatal(err)
	}
	s.confined = &confinement{User: nobody, Calls: shippedProfile(t, "plimsoll-serve")}
	server := &daemon{t: t, cmd: s.command(context.Background(), "serve", "--agent-socket", socket, "--listen",
		"127.0.0.1:0", "--token-file", token),
		log: &logbook.Book{}, done: make(chan struct{})}
	server.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	server.begin()
	if !server.says("msg=serving") {
		t.Fatalf("it does not serve:\n%s", server.log)
	}
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(server.log.String())
	client := http.Client{Timeout: patience(5 * time.Second)}
	for path, want := range map[string]string{"/metrics": "plimsoll_build_info", "/healthz": "", "/readyz": ""} {
		answer, err := client.Get("http://" + address + path)
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, server.log)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, %s: %s", path, err, answer.Status, text)
		}
	}
	server.stop(syscall.SIGTERM)
	unrefused(t, "serve", server.log.String())
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// TestLeaseUnderItsProfile: an agent that hangs is killed, and what it wrote is put back.
func TestLeaseUnderItsProfile(t *testing.T) {
	s := newShipped(t)
	g := cgrouptest.New(t)
	g.Prevail()
	g.Limit(hogLimit)
	before := files(t, g)
	s.configure("auto", g.Path)
	g.Spin(1)
	agent := s.start()
	changed(t, s, before, g)
	if err := agent.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.binary = filepath.Join(filepath.Dir(s.binary), "plimsoll-lease")
	s.confined = &confinement{Keep: []capability.Capability{capability.Nice},
		Calls: shippedProfile(t, "plimsoll-lease")}
	lease := &daemon{t: t, cmd: s.command(context.Background(), "--after", "3s"), log: &logbook.Book{},
		done: make(chan struct{})}
	lease.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	lease.begin()
	if !lease.says("limits are put back") {
		t.Errorf("it does not put the limits back:\n%s", lease.log)
	}
	same(t, patience(5*time.Second), before, g)
	lease.stop(syscall.SIGTERM)
	unrefused(t, "the lease", lease.log.String())
}
