package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/fulldisk"
	"plimsoll/internal/journal"
	"plimsoll/internal/lease"
	"plimsoll/internal/lock"
	"plimsoll/internal/logbook"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// build builds the program, as an image has it, where it is not there already, beside the binary that is tested.
func build(t *testing.T) string {
	t.Helper()
	if binary := os.Getenv("PLIMSOLL_BINARY"); binary != "" {
		return filepath.Join(filepath.Dir(binary), "plimsoll-lease")
	}
	program := filepath.Join(t.TempDir(), "plimsoll-lease")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// node is the files of a cgroup v1 tree, and the state that a dead agent has left.
type node struct {
	t              *testing.T
	cgroups, state string
	groups         []string
}

// raisedPods is a node of so many pods of one container each, with a raise and a burst in each group, and a journal as
// long as it ever gets.
func raisedPods(t *testing.T, pods int) *node {
	t.Helper()
	n := &node{t: t, cgroups: t.TempDir(), state: t.TempDir()}
	n.write("cpu.shares", "1024\n")
	boot, err := journal.BootID()
	if err != nil {
		t.Fatal(err)
	}
	disk := journal.NewMemory()
	j, err := journal.OpenDisk(disk, boot, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		pod := fmt.Sprintf("kubepods/burstable/pod%08x-0123-4567-89ab-0123456789ab", i)
		n.group(j, pod)
		n.group(j, fmt.Sprintf("%s/%064x", pod, i))
	}
	text, err := disk.ReadFile("journal")
	if err := errors.Join(err, os.WriteFile(filepath.Join(n.state, "journal"), text, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Logf("a journal of %d groups and %d kB", len(n.groups), len(text)/1000)
	return n
}

func (n *node) write(name, text string) {
	n.t.Helper()
	file := filepath.Join(n.cgroups, "cpu", name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) group(j *journal.Journal, path string) {
	n.t.Helper()
	n.write(path+"/cpu.cfs_quota_us", "150000\n")
	n.write(path+"/cpu.cfs_period_us", "100000\n")
	n.write(path+"/cpu.cfs_burst_us", "50000\n")
	info, err := os.Stat(filepath.Join(n.cgroups, "cpu", path))
	if err != nil {
		n.t.Fatal(err)
	}
	id := workload.ID{Path: "/" + path, Inode: info.Sys().(*syscall.Stat_t).Ino}
	for _, e := range []journal.Entry{
		{ID: id, Knob: plan.Quota, Original: "50ms", Min: "50ms", Max: "150ms", Baseline: "50ms"},
		{ID: id, Knob: plan.Burst, Original: "0s", Min: "0s", Max: "50ms"},
	} {
		if err := errors.Join(j.Claim(e), j.Intend(id, e.Knob, e.Original), j.Intend(id, e.Knob, e.Max),
			j.Intend(id, e.Knob, e.Max)); err != nil {
			n.t.Fatal(err)
		}
	}
	n.groups = append(n.groups, path)
}

// place is where an agent of the node has its lock.
func (n *node) place() lock.Place {
	return lock.Place{Dir: filepath.Join(n.state, "locks"), Root: filepath.Join(n.cgroups, "cpu"), StateDir: n.state}
}

// start starts the program on the node, with a lease of three seconds, after what comes before its name.
func (n *node) start(program string, before ...string) (cmd *exec.Cmd, log *logbook.Book) {
	n.t.Helper()
	log = &logbook.Book{}
	args := append(before, program, "--cgroup-root", n.cgroups, "--state-dir", n.state, "--lock-dir", n.place().Dir,
		"--after", "3s")
	cmd = exec.Command(args[0], args[1:]...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if len(before) > 0 { // in a PID namespace of its own
		cmd.Env = append(os.Environ(), apartVar+"=1")
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
		if n.t.Failed() {
			n.t.Logf("the log:\n%s", log)
		}
	})
	return cmd, log
}

// says waits until a log has a text.
func says(t *testing.T, b *logbook.Book, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(b.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not say %q", text)
		}
	}
}

// isBack waits until all limits are back. A shorter write does not shorten a plain file.
func (n *node) isBack(within time.Duration) {
	n.t.Helper()
	begin := time.Now()
	for _, path := range n.groups {
		for file, want := range map[string]string{"cpu.cfs_quota_us": "50000", "cpu.cfs_burst_us": "0"} {
			for {
				text, err := os.ReadFile(filepath.Join(n.cgroups, "cpu", path, file))
				if err != nil {
					n.t.Fatal(err)
				}
				if bytes.HasPrefix(text, []byte(want)) {
					break
				}
				if time.Since(begin) > within {
					n.t.Fatalf("%s of %s is %q", file, path, text)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
}

// status reads a number of /proc/PID/status, in kB.
func status(t *testing.T, pid int, name string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

// TestSmall: the program needs at most 24 MiB to restore 3,000 pods, and is linked with hardly anything.
func TestSmall(t *testing.T) {
	if os.Getuid() != 0 {
		cgrouptest.Skip(t, "cannot restore: not root")
	}
	program := build(t)
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range info.Deps {
		if module.Path != "golang.org/x/sys" {
			t.Errorf("it has %s in it", module.Path)
		}
	}
	n := raisedPods(t, 3000)
	cmd, _ := n.start(program)
	n.isBack(time.Minute)
	peak := status(t, cmd.Process.Pid, "VmHWM")
	t.Logf("%d kB while it restored, %d kB after it", peak, status(t, cmd.Process.Pid, "VmRSS"))
	if peak > 24<<10 {
		t.Errorf("%d kB while it restored 3,000 pods, at most 24 MiB are allowed", peak)
	}
}

// TestBesideAnAgentThatCannotBeSeen: an agent that sends its heartbeats elsewhere, from a PID namespace in which it
// cannot be seen, has the lock: nothing is written until it lets go, and then limits are put back.
func TestBesideAnAgentThatCannotBeSeen(t *testing.T) {
	if os.Getuid() != 0 {
		cgrouptest.Skip(t, "cannot restore: not root")
	}
	program := build(t)
	n := raisedPods(t, 1)
	n.write("cgroup.procs", "")
	lock, err := lock.Take(n.place())
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(n.state, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	_, log := n.start(program, "/proc/self/exe")
	says(t, log, "another plimsoll already runs")
	for _, path := range n.groups {
		if text, err := os.ReadFile(filepath.Join(n.cgroups, "cpu", path, "cpu.cfs_quota_us")); err != nil ||
			string(text) != "150000\n" {
			t.Errorf("%q, %v", text, err)
		}
	}
	if after, err := os.ReadFile(filepath.Join(n.state, "journal")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the journal was written without the lock: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	n.isBack(time.Minute)
	says(t, log, "limits are put back")
}

// silent is a watcher of the node whose lease has run out.
func (n *node) silent() (*watcher, *logbook.Book) {
	n.t.Helper()
	tree, err := cgroup.Detect(cgroup.NewDir(n.cgroups))
	if err != nil {
		n.t.Fatal(err)
	}
	log := &logbook.Book{}
	g := &watcher{place: n.place(), tree: tree, log: slog.New(slog.NewTextHandler(log, nil))}
	for _, at := range []time.Duration{10 * time.Second, 13 * time.Second} {
		g.memory = g.memory.Look(at, lease.Beat{}, lease.Holder{})
	}
	if g.memory.Judge(true) != lease.Restore {
		n.t.Fatal("it would not restore: the scenario proves nothing")
	}
	return g, log
}

// isPutOff checks that a restore is not tried again at once, and keeps nobody who is asked to end.
func isPutOff(t *testing.T, m lease.Memory) {
	t.Helper()
	if m.Judge(true) != lease.Wait {
		t.Error("it is tried again at the next look")
	}
	if !m.Part(14*time.Second).May(m, true) {
		t.Error("who is asked to end stays")
	}
}

// TestRestoreOnAFullDisk: limits are put back also where the journal cannot note it. Its entries stay, and are tried
// again after a while.
func TestRestoreOnAFullDisk(t *testing.T) {
	if fulldisk.Elsewhere(t) {
		return
	}
	n := raisedPods(t, 1)
	g, log := n.silent()
	info, err := os.Stat(filepath.Join(n.state, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	fulldisk.Fill(t, info.Size())
	g.restore()
	n.isBack(0)
	if !g.entries() {
		t.Error("the journal has no entries: the scenario proves nothing")
	}
	isPutOff(t, g.memory)
	if want := "refused=0 left_in_journal=4"; !strings.Contains(log.String(), want) {
		t.Errorf("it does not say %q: %s", want, log)
	}
}

// TestFlags: a mistake in a flag is named.
func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                          "",
		"--after 5s --state-dir /x": "",
		"--log-format=json":         "",
		"--log-format xml":          `--log-format "xml" is neither text nor json`,
		"--after 3s":                "",
		"--after 2s":                "--after 2s is less than 3s",
		"--nosuch":                  "-nosuch",
		"now":                       `unknown argument "now"`,
	} {
		var said bytes.Buffer
		_, err := parse(strings.Fields(args), &said)
		if (err == nil) != (want == "") || !strings.Contains(said.String(), want) {
			t.Errorf("%q: %v, %q; want %q", args, err, said.String(), want)
		}
	}
	if _, err := parse([]string{"--state-dir"}, io.Discard); err == nil {
		t.Error("a flag without its value")
	}
}
