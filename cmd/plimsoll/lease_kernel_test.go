package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/lease"
	"plimsoll/internal/logbook"
)

// shortLease is that of tests that need not take the real ten seconds. It is a few heartbeats long.
const shortLease = 3 * time.Second

// leased is an agent with a raise in force, beside a process of plimsoll-lease.
type leased struct {
	*shipped
	group   *cgrouptest.Group
	before  map[string]string
	stop    func() []reading
	agent   *daemon
	watcher *daemon
	after   time.Duration
}

// raisedUnderLease starts both, and waits for the raise.
func raisedUnderLease(t *testing.T, after time.Duration) *leased {
	t.Helper()
	s := newShipped(t)
	s.baseline = true
	s.flags = []string{"--poll"} // so that the quota is raised, and soon
	g, _ := newHog(t)
	l := &leased{shipped: s, group: g, before: files(t, g), after: after}
	s.configure("cfsQuotaBurstOnly", g.Path)
	l.stop = watch(t, g)
	l.agent = s.start()
	l.watcher = s.lease(after)
	l.raised()
	return l
}

// lease starts plimsoll-lease.
func (s *shipped) lease(after time.Duration) *daemon {
	s.t.Helper()
	program := filepath.Join(filepath.Dir(s.binary), "plimsoll-lease")
	cmd := exec.Command(program, "--state-dir", s.state, "--cgroup-root", cgrouptest.Root(), "--after", after.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	d := &daemon{t: s.t, cmd: cmd, log: &logbook.Book{}, done: make(chan struct{})}
	d.begin()
	if !d.says("msg=watching") {
		s.t.Fatalf("plimsoll-lease does not start:\n%s", d.log)
	}
	return d
}

func (l *leased) raised() {
	l.t.Helper()
	eventually(l.t, raiseWait, func() string {
		if quota, _ := bandwidthNow(l.t, l.group); quota > hogLimit {
			return ""
		}
		return fmt.Sprintf("not raised; node %+v", l.status().Node)
	})
}

// stillRaised sees that a scenario proves something.
func (l *leased) stillRaised() {
	l.t.Helper()
	if cmp.Equal(l.before, files(l.t, l.group)) {
		l.t.Fatal("the limit was put back by somebody else: the scenario proves nothing")
	}
}

// putBack waits until the limit is back, from the agent's end on: for the lease and two seconds, and the time in which
// the machine did not let plimsoll-lease look. No period had more than the cap in the meantime, and a later agent
// starts as if nothing had been.
func (l *leased) putBack() {
	l.t.Helper()
	l.stillRaised()
	l.awaitLimits()
	if readings := l.stop(); !emulated() {
		checkCap(l.t, readings, 3*hogLimit)
	}
	<-l.agent.done
	if !l.watcher.says("limits are put back") {
		l.t.Errorf("plimsoll-lease does not say so:\n%s", l.watcher.log)
	}
	l.startsAgain()
}

// awaitLimits waits for the limits to be back, at most for the lease and two seconds, and for the time that the machine
// did not let plimsoll-lease look.
func (l *leased) awaitLimits() {
	l.t.Helper()
	begin, within, earlier := time.Now(), patience(l.after+2*time.Second), l.withoutALook()
	same(l.t, 4*within, l.before, l.group)
	took, gaps := time.Since(begin).Round(ms), l.withoutALook()-earlier
	l.t.Logf("put back after %v", took)
	if took > within+gaps {
		l.t.Errorf("put back after %v, and gaps between looks explain %v\n%s", took, gaps, l.watcher.log)
	}
}

// withoutALook is the time that a lease is longer by for gaps between the looks of plimsoll-lease: each of them, and
// the looks after it before anybody is judged (lease.Memory).
func (l *leased) withoutALook() (sum time.Duration) {
	for _, gap := range regexp.MustCompile(`without_a_look=(\S+)`).FindAllStringSubmatch(l.watcher.log.String(), -1) {
		length, err := time.ParseDuration(gap[1])
		if err != nil {
			l.t.Fatal(err)
		}
		sum += length + 3*lease.Memory{After: l.after}.Every()
	}
	return sum
}

func (l *leased) startsAgain() {
	l.t.Helper()
	next := l.start()
	for _, wrong := range []string{"did not stop in order", "level=ERROR"} {
		if strings.Contains(next.log.String(), wrong) {
			l.t.Errorf("the next agent says %q:\n%s", wrong, next.log)
		}
	}
	l.raised()
	next.stop(syscall.SIGTERM)
	same(l.t, 0, l.before, l.group)
}

// TestLeaseOfAStoppedAgent is at the real length of a lease, and with two processes that watch, as during an update.
func TestLeaseOfAStoppedAgent(t *testing.T) {
	l := raisedUnderLease(t, lease.After)
	other := l.lease(lease.After)
	if err := l.agent.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(lease.After / 2) // it hangs, and half of the lease is left
	l.stillRaised()
	select {
	case <-l.agent.done:
		t.Fatal("it was killed before its lease had run out")
	default:
	}
	l.after /= 2 // what is left
	l.awaitLimits()
	if s := l.agent.wait().Signal(); s != syscall.SIGKILL {
		t.Errorf("the agent ended with %v", s)
	}
	if readings := l.stop(); !emulated() {
		checkCap(t, readings, 3*hogLimit)
	}
	eventually(t, patience(2*time.Second), func() string {
		if n := strings.Count(l.watcher.log.String()+other.log.String(), "limits are put back"); n != 1 {
			return fmt.Sprintf("put back by %d processes", n)
		}
		return ""
	})
	l.startsAgain()
}

func (d *daemon) wait() syscall.WaitStatus {
	<-d.done
	return d.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// TestLeaseOfAKilledAgent: an agent that was killed, that nobody starts again.
func TestLeaseOfAKilledAgent(t *testing.T) {
	l := raisedUnderLease(t, shortLease)
	l.agent.stop(syscall.SIGKILL)
	l.putBack()
}

// TestLeaseOfAnAgentOutOfMemory: the kernel ends an agent that wants more memory than its group may have.
func TestLeaseOfAnAgentOutOfMemory(t *testing.T) {
	memory := memoryGroup(t) // removed after the agent's end
	l := raisedUnderLease(t, shortLease)
	// What a process has stays charged to the group that it was in. From now on it may have nothing more.
	l.limitMemory(memory, l.agent.cmd.Process.Pid)
	for end := time.Now().Add(patience(20 * time.Second)); ; {
		_, _ = l.run("status", "--json") // for which it needs memory
		select {
		case <-l.agent.done:
		default:
			if time.Now().After(end) {
				t.Fatal("it does not run out of memory: the scenario proves nothing")
			}
			continue
		}
		break
	}
	if s := l.agent.wait().Signal(); s != syscall.SIGKILL || kills(t, memory) == 0 {
		t.Fatalf("it ended with %v, and the kernel counts %d kills: the scenario proves nothing", s, kills(t, memory))
	}
	l.putBack()
}

// memoryGroup makes a group of the memory controller: in its own hierarchy (v1), or where that is enabled (v2).
func memoryGroup(t *testing.T) string {
	t.Helper()
	name := filepath.Join(cgrouptest.Root(), "memory", fmt.Sprint("plimsoll-test-oom-", os.Getpid()))
	if _, err := os.Stat(filepath.Join(cgrouptest.Root(), "memory/memory.limit_in_bytes")); err != nil {
		text, _ := os.ReadFile(filepath.Join(cgrouptest.Root(), "cgroup.subtree_control"))
		if !strings.Contains(string(text), "memory") {
			cgrouptest.Elsewhere(t, "tier kernel on a host with the memory controller",
				"no memory controller is enabled")
		}
		name = filepath.Join(cgrouptest.Root(), filepath.Base(name))
	}
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		eventually(t, 5*time.Second, func() string {
			if err := os.Remove(name); err != nil {
				return err.Error()
			}
			return ""
		})
	})
	return name
}

func (l *leased) limitMemory(group string, pid int) {
	l.t.Helper()
	limit := filepath.Join(group, "memory.limit_in_bytes")
	if _, err := os.Stat(limit); err != nil {
		limit = filepath.Join(group, "memory.max")
	}
	// The limit comes first: the kernel refuses one (EBUSY, v1) while more than that is charged to the group.
	for _, w := range [][2]string{{limit, "65536"}, {filepath.Join(group, "cgroup.procs"), strconv.Itoa(pid)}} {
		if err := os.WriteFile(w[0], []byte(w[1]), 0o644); err != nil {
			l.t.Fatal(err)
		}
	}
}

// kills is how many processes of a group the kernel has killed.
func kills(t *testing.T, group string) int {
	t.Helper()
	for _, file := range []string{"memory.oom_control", "memory.events"} {
		text, _ := os.ReadFile(filepath.Join(group, file))
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
				n, err := strconv.Atoi(strings.TrimSpace(value))
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
	}
	t.Fatal("the kernel does not count kills")
	return 0
}

// TestLeaseOfAnAgentInACrashLoop: an agent that is killed again right after each start, until nobody starts it any
// more, has sent no heartbeat since the first time.
func TestLeaseOfAnAgentInACrashLoop(t *testing.T) {
	l := raisedUnderLease(t, 3*shortLease) // within which four agents start beside any load
	l.agent.stop(syscall.SIGKILL)
	begin := time.Now()
	for range 4 { // as a kubelet does before it waits for ten seconds
		again := l.launch(l.flags...)
		again.stop(syscall.SIGKILL)
		time.Sleep(200 * ms)
	}
	if l.after -= time.Since(begin); l.after < 0 {
		t.Fatalf("four starts took %v: the scenario proves nothing", time.Since(begin))
	}
	l.putBack()
}

// TestLeaseThatIsAskedToEnd: a pod's containers are asked to end together. Where the agent hangs, plimsoll-lease stays
// until its limits are back; beside one that goes on it ends.
func TestLeaseThatIsAskedToEnd(t *testing.T) {
	l := raisedUnderLease(t, shortLease)
	l.watcher.stop(syscall.SIGTERM)
	l.stillRaised()
	l.watcher = l.lease(shortLease)
	if err := l.agent.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := l.watcher.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	l.awaitLimits()
	select {
	case <-l.watcher.done:
		if code := l.watcher.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(patience(2 * time.Second)):
		t.Error("it does not end")
	}
}

// TestLeaseAndASuccessor: the agent that stands by takes over from one that is killed because it hangs, and is left
// alone. Either of the two that get the lock restores, and only one of them.
func TestLeaseAndASuccessor(t *testing.T) {
	l := raisedUnderLease(t, shortLease)
	second := l.launch(append(l.flags, "--stand-by")...)
	if !second.says("standing by") {
		t.Fatalf("it does not stand by:\n%s", second.log)
	}
	time.Sleep(patience(200 * ms)) // it stands in line
	if err := l.agent.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	l.stillRaised()
	select {
	case <-l.agent.done:
	case <-time.After(patience(shortLease + 2*time.Second)):
		t.Fatal("it was not killed")
	}
	if !second.runs() {
		t.Fatalf("the successor does not take over:\n%s", second.log)
	}
	byWatcher := strings.Count(l.watcher.log.String(), "limits are put back")
	if bySecond := strings.Count(second.log.String(), "did not stop in order"); byWatcher+bySecond != 1 {
		t.Errorf("put back %d times by plimsoll-lease, %d times by the successor", byWatcher, bySecond)
	}
	l.raised()
	time.Sleep(patience(shortLease + 2*time.Second))
	l.raised()
	if n := strings.Count(l.watcher.log.String(), "was killed"); n != 1 {
		t.Errorf("plimsoll-lease has killed %d processes:\n%s", n, l.watcher.log)
	}
	if readings := l.stop(); !emulated() {
		checkCapAndGrant(t, readings, 3*hogLimit, hogLimit) // one restore
	}
	second.stop(syscall.SIGTERM)
	same(t, 0, l.before, l.group)
	time.Sleep(patience(shortLease + time.Second))
	if strings.Count(l.watcher.log.String(), "limits are put back") != byWatcher {
		t.Errorf("after a clean end there is something to do:\n%s", l.watcher.log)
	}
}
