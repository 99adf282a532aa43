//go:build kube

package kube

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/logbook"
	"plimsoll/internal/report"
)

// lockWait is how long another agent on this machine may keep the lock.
const lockWait = time.Minute

// agent is the binary with a state directory and a configuration of its own.
type agent struct {
	t             *testing.T
	state, config string
	flags         []string
	busy          bool // it sees what the machine uses
	cmd           *exec.Cmd
	log           *logbook.Book
	done          chan struct{} // closed at its end
}

// newAgent makes an agent that is not started yet. It runs in the cluster's network namespace, as a pod of the host's
// network does.
func newAgent(t *testing.T, config string, flags ...string) *agent {
	t.Helper()
	dir, err := os.MkdirTemp(cgrouptest.Volatile(), "pl") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a := &agent{t: t, state: filepath.Join(dir, "state"), config: filepath.Join(dir, "config.yaml"), flags: flags}
	if err := os.WriteFile(a.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// command is a command of the binary. The agent sees an idle machine, whatever else runs there: on a full machine
// it would raise nothing. In a mount namespace of its own, the machine's counter of CPU time is constant.
func (a *agent) command(args ...string) *exec.Cmd {
	front := []string{inside, cluster.binary}
	if args[0] == "run" && !a.busy {
		front = []string{inside, "unshare", "--mount", "--propagation", "slave", "sh", "-c",
			`mount --bind "$0" "$1" && shift && exec "$@"`,
			still(a.t), filepath.Join(cgrouptest.Root(), counter()), cluster.binary}
	}
	return exec.Command("nsenter", append(front, append(args, "--state-dir", a.state)...)...)
}

// counter is the file of the CPU time that the whole machine has used, below the root of the control groups.
func counter() string {
	if cluster.groups.Version() == cgroup.V2 {
		return "cpu.stat"
	}
	return "cpuacct/cpuacct.usage"
}

// still is a file with what the machine's counter of CPU time said at the begin of the test.
func still(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cgrouptest.Root(), counter()))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(scratch, "counter")
	if err := os.WriteFile(file+".new", text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	return file
}

// start starts it as soon as no other agent runs, and waits until it takes turns.
func (a *agent) start() {
	a.t.Helper()
	begin := time.Now()
	for end := begin.Add(lockWait); ; time.Sleep(200 * time.Millisecond) {
		a.cmd = a.command(append([]string{"run", "--config", a.config, "--listen", "127.0.0.1:0"}, a.flags...)...)
		a.log, a.done = &logbook.Book{}, make(chan struct{})
		a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
		a.cmd.Stderr = a.log
		if err := a.cmd.Start(); err != nil {
			a.t.Fatal(err)
		}
		go func(cmd *exec.Cmd, done chan struct{}) {
			_ = cmd.Wait() // ProcessState has it
			close(done)
		}(a.cmd, a.done)
		if a.runs() {
			a.t.Cleanup(a.end)
			if waited := time.Since(begin); waited > time.Second {
				a.t.Logf("%v until it ran: another agent on this machine?", waited.Round(ms))
			}
			return
		}
		a.end()
		if !strings.Contains(a.log.String(), "another plimsoll already runs") || time.Now().After(end) {
			a.t.Fatalf("the agent does not start:\n%s", a.log)
		}
	}
}

func (a *agent) runs() bool {
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		select {
		case <-a.done:
			return false
		default:
		}
		if strings.Contains(a.log.String(), "msg=running") {
			return true
		}
	}
	return false
}

// wrote waits until the agent has read back what it wrote to a group. What another one writes before that is no foreign
// value that the agent finds later: the agent says that its own write was trampled.
func (a *agent) wrote(group string) {
	a.t.Helper()
	eventually(a.t, wait, func() string {
		for line := range strings.Lines(a.log.String()) {
			if strings.Contains(line, "cgroup="+group+" ") && strings.Contains(line, " in_force=") {
				return ""
			}
		}
		return "no write to " + group + " is in force"
	})
}

// end ends the test in any case.
func (a *agent) end() {
	_ = a.cmd.Process.Signal(syscall.SIGCONT) // a test may have stopped it
	_ = a.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-a.done:
	case <-time.After(wait):
		a.t.Errorf("the agent does not end:\n%s", cgrouptest.Waits(a.cmd.Process.Pid))
		_ = a.cmd.Process.Signal(syscall.SIGQUIT) // its log ends with what its goroutines wait for
		select {
		case <-a.done:
		case <-time.After(wait):
			_ = a.cmd.Process.Kill()
			<-a.done
		}
	}
	if a.t.Failed() {
		a.t.Logf("the agent's log:\n%s", a.log)
	}
}

// signal sends one.
func (a *agent) signal(s syscall.Signal) {
	a.t.Helper()
	if err := a.cmd.Process.Signal(s); err != nil {
		a.t.Fatal(err)
	}
}

// freeze stops the agent, and waits for that: the signal stops nothing until one of its
// threads has had a turn on a busy CPU.
func (a *agent) freeze() {
	a.t.Helper()
	a.signal(syscall.SIGSTOP)
	eventually(a.t, wait, func() string {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
		if err != nil || !strings.Contains(string(status), "State:\tT") {
			return fmt.Sprintf("the agent is not stopped: %v", err)
		}
		return ""
	})
}

// stop sends a signal and waits for the end.
func (a *agent) stop(signal syscall.Signal) {
	a.t.Helper()
	if err := a.cmd.Process.Signal(signal); err != nil {
		a.t.Fatal(err)
	}
	select {
	case <-a.done:
	case <-time.After(wait):
		a.t.Fatalf("the agent does not end on %v", signal) // end says what it waits for
	}
	if code := a.cmd.ProcessState.ExitCode(); signal == syscall.SIGTERM && code != 0 {
		a.t.Errorf("exit code %d on SIGTERM", code)
	}
}

// status reads the running agent.
func (a *agent) status() report.Status {
	a.t.Helper()
	out, err := output(a.command("status", "--json"))
	if err != nil {
		a.t.Fatal(err)
	}
	var s report.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		a.t.Fatal(err)
	}
	return s
}

// restore puts back what a dead agent left behind.
func (a *agent) restore() {
	a.t.Helper()
	if out, err := output(a.command("restore")); err != nil {
		a.t.Fatal(err, out)
	}
}

// policy is a configuration file: one policy for everything that is found, and a guard that refuses nothing.
func policy(name string) string {
	return fmt.Sprintf("strategy: {policy: %s, sharePoolThresholdPercent: 100}\n", name)
}
