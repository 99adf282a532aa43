package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/logbook"
	"plimsoll/internal/report"
)

const ms = time.Millisecond

// binaryVar names the binary to test; plimsoll-lease is beside it. Without it, they are built.
const binaryVar = "PLIMSOLL_BINARY"

// lockWait is how long another agent on this machine may keep the lock: tests of other packages start some too.
const lockWait = time.Minute

// build builds the binary once for all tests; TestMain removes it.
var build = sync.OnceValues(func() (string, error) {
	if binary := os.Getenv(binaryVar); binary != "" {
		return binary, nil
	}
	dir, err := os.MkdirTemp("", "plimsoll")
	if err != nil {
		return "", err
	}
	built.dir = dir
	cmd := exec.Command("go", "build", "-o", dir, ".", "../plimsoll-lease")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return filepath.Join(dir, "plimsoll"), nil
})

var built struct{ dir string }

func TestMain(m *testing.M) {
	if program := os.Getenv(baselineVar); program != "" {
		fmt.Fprintln(os.Stderr, becomeBaseline(program))
		os.Exit(1)
	}
	if root := os.Getenv(strangerVar); root != "" {
		if becomeStranger(root) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(tryVar) != "" && os.Getenv(confinedVar) == "" {
		try()
		os.Exit(0)
	}
	if text := os.Getenv(confinedVar); text != "" {
		fmt.Fprintln(os.Stderr, becomeConfined(text))
		os.Exit(1)
	}
	if calledAsProgram() {
		main()
		os.Exit(0)
	}
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// emulated says that the CPU is emulated: then no bound on time applies.
func emulated() bool { return os.Getenv("PLIMSOLL_EMULATED") != "" }

// patience stretches a bound on time where the CPU is emulated.
func patience(d time.Duration) time.Duration {
	if emulated() {
		return 10 * d
	}
	return d
}

// shipped is the binary with a state directory and a configuration of its own.
type shipped struct {
	t             *testing.T
	binary        string
	state, config string
	flags         []string // further ones of run
	stderr        *os.File // of run; nil: kept as its log
	apart         bool     // it runs in a PID namespace of its own
	baseline      bool     // it sees a constant use of the machine
	confined      *confinement
}

func newShipped(t *testing.T) *shipped {
	t.Helper()
	cgrouptest.New(t) // skips, or fails, where there are no groups
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(cgrouptest.Volatile(), "pl") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &shipped{t: t, binary: binary, state: filepath.Join(dir, "state"), config: filepath.Join(dir, "config.yaml")}
}

func (s *shipped) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.binary, append(args, "--state-dir", s.state, "--cgroup-root",
		cgrouptest.Root())...)
	if s.confined != nil {
		if err := s.confined.apply(cmd); err != nil {
			s.t.Fatal(err)
		}
	}
	return cmd
}

// run runs a command to its end.
func (s *shipped) run(args ...string) (stdout string, err error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience(20*time.Second))
	defer cancel()
	cmd := s.command(ctx, args...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("plimsoll %s: %w: %s", strings.Join(args, " "), err, problems.String())
	}
	return string(out), err
}

func (s *shipped) must(args ...string) string {
	s.t.Helper()
	out, err := s.run(args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// unlocked runs a command that takes the lock, as soon as no other process has it.
func (s *shipped) unlocked(args ...string) string {
	s.t.Helper()
	for end := time.Now().Add(lockWait); ; time.Sleep(200 * ms) {
		out, err := s.run(args...)
		if err == nil {
			return out
		}
		if !locked(err.Error()) || time.Now().After(end) {
			s.t.Fatal(err)
		}
	}
}

func locked(text string) bool { return strings.Contains(text, "another plimsoll already runs") }

// configure replaces the configuration: a policy for these groups, none for all others.
func (s *shipped) configure(policy string, globs ...string) {
	s.t.Helper()
	text := "strategy: {policy: none, sharePoolThresholdPercent: 100}\noverrides:\n"
	for _, glob := range globs {
		text += fmt.Sprintf("  - {cgroup: %q, policy: %s}\n", glob, policy)
	}
	s.write(text)
}

func (s *shipped) write(text string) {
	s.t.Helper()
	temp := s.config + ".new"
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(temp, s.config); err != nil {
		s.t.Fatal(err)
	}
}

// status asks the running agent. Where a test keeps all emulated CPUs busy, the agent may get too little CPU time to
// answer within the 2 s that it is given. That is not what these tests are about, so they ask again.
func (s *shipped) status() (status report.Status) {
	s.t.Helper()
	out, err := s.run("status", "--json")
	for end := time.Now().Add(20 * time.Second); emulated() && err != nil && time.Now().Before(end) &&
		strings.Contains(err.Error(), "gave no answer"); {
		out, err = s.run("status", "--json")
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &status)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return status
}

// daemon is a running agent.
type daemon struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *logbook.Book
	done chan struct{} // closed at its end
}

// start starts an agent on the configuration, as soon as no other runs, and waits until it takes turns. The kernel ends
// it in order if the test dies.
func (s *shipped) start() *daemon {
	s.t.Helper()
	for end := time.Now().Add(lockWait); ; time.Sleep(200 * ms) {
		l := s.launch(s.flags...)
		if l.runs() {
			return l
		}
		l.end()
		if !locked(l.log.String()) || time.Now().After(end) {
			s.t.Fatalf("the agent does not start:\n%s", l.log)
		}
	}
}

// launch starts an agent, and waits for nothing.
func (s *shipped) launch(flags ...string) *daemon {
	s.t.Helper()
	l := &daemon{t: s.t, cmd: s.command(context.Background(),
		append([]string{"run", "--config", s.config, "--listen", "127.0.0.1:0"}, flags...)...),
		log: &logbook.Book{}, done: make(chan struct{})}
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if s.apart {
		l.cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID
	}
	if s.baseline {
		if err := baseline(l.cmd); err != nil {
			s.t.Fatal(err)
		}
	}
	if s.stderr != nil {
		l.cmd.Stderr = s.stderr
	}
	l.begin()
	return l
}

// begin starts the process.
func (l *daemon) begin() {
	l.t.Helper()
	if l.cmd.Stderr == nil {
		l.cmd.Stderr = l.log
	}
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() {
		_ = l.cmd.Wait() // ProcessState has it
		close(l.done)
	}()
	l.t.Cleanup(l.end)
}

// runs waits until it takes turns. How long a start takes is no matter here.
func (l *daemon) runs() bool { return l.saysWithin("msg=running", patience(30*time.Second)) }

// says waits until the log has a text.
func (l *daemon) says(text string) bool { return l.saysWithin(text, patience(5*time.Second)) }

func (l *daemon) saysWithin(text string, wait time.Duration) bool {
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(patience(5 * ms)) {
		select {
		case <-l.done:
			return false
		default:
		}
		if strings.Contains(l.log.String(), text) {
			return true
		}
	}
	return false
}

// end is the end of the test: the agent restores everything in any case.
func (l *daemon) end() {
	_ = l.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-l.done:
	case <-time.After(patience(5 * time.Second)):
		l.t.Errorf("the agent does not end:\n%s", cgrouptest.Waits(l.cmd.Process.Pid))
		l.quit()
	}
	if l.t.Failed() {
		l.t.Logf("the agent's log:\n%s", l.log)
	}
}

// quit ends an agent that hangs. Its log then says what each goroutine waits for.
func (l *daemon) quit() {
	_ = l.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-l.done:
	case <-time.After(patience(5 * time.Second)):
		_ = l.cmd.Process.Kill()
		<-l.done
	}
}

// stop sends a signal and waits for the end.
func (l *daemon) stop(sig syscall.Signal) {
	l.t.Helper()
	if err := l.cmd.Process.Signal(sig); err != nil {
		l.t.Fatal(err)
	}
	select {
	case <-l.done:
	case <-time.After(patience(5 * time.Second)):
		l.t.Fatalf("the agent does not end on %v", sig)
	}
	if code := l.cmd.ProcessState.ExitCode(); sig != syscall.SIGKILL && code != 0 {
		l.t.Errorf("exit code %d on %v", code, sig)
	}
}

// files reads all that may ever be written of some groups, byte by byte.
func files(t *testing.T, groups ...*cgrouptest.Group) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, g := range groups {
		for _, f := range []string{"cpu.max", "cpu.max.burst", "cpu.weight", "cpu.idle", "cpu.cfs_quota_us",
			"cpu.cfs_period_us", "cpu.cfs_burst_us", "cpu.shares"} {
			if data, err := os.ReadFile(g.File(f)); err == nil {
				texts[g.Path+"/"+f] = string(data)
			}
		}
	}
	if len(texts) < 2*len(groups) {
		t.Fatalf("only %d files: %v", len(texts), texts)
	}
	return texts
}

// eventually waits until wrong has nothing to say any more.
func eventually(t *testing.T, within time.Duration, wrong func() string) {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(patience(5 * ms)) {
		said := wrong()
		if said == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v: %s", within, said)
		}
	}
}

// same waits for files that are byte by byte as before.
func same(t *testing.T, within time.Duration, before map[string]string, groups ...*cgrouptest.Group) {
	t.Helper()
	eventually(t, within, func() string { return cmp.Diff(before, files(t, groups...)) })
}

// changed waits until something of ours stands: a burst where the kernel has it, else a quota.
func changed(t *testing.T, s *shipped, before map[string]string, g *cgrouptest.Group) {
	t.Helper()
	within := patience(5 * time.Second)
	if !hasBurst(g) {
		within = raiseWait
	}
	eventually(t, within, func() string {
		if !cmp.Equal(before, files(t, g)) {
			return ""
		}
		return fmt.Sprintf("nothing was written; node %+v", s.status().Node)
	})
}

// hasBurst says whether the kernel has a burst buffer (5.14 and later).
func hasBurst(g *cgrouptest.Group) bool {
	_, err := g.Tree().Burst(g.Path)
	return err == nil
}
