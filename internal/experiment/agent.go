package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
	"plimsoll/internal/web"
)

const (
	// after a change of policy, for what cannot be seen in a file: it is read within a second
	afterChange = 1200 * time.Millisecond
	// the agent starts, reads its configuration and writes: long on an emulated CPU
	applyPatience = time.Minute
	stopPatience  = 15 * time.Second // the agent restores what it changed
	askPatience   = 5 * time.Second  // it answers
)

// Setup is how an agent is started.
type Setup struct {
	Binary  string   // plimsoll
	Root    string   // where the control groups are mounted
	Flags   []string // of `plimsoll run`, besides
	Offline *Offline // work that is declared as such
	State   string   // directory of its state; "": one that is removed with the agent
	Env     []string // added to the environment of this process
	Stderr  *os.File // receives the agent's log; nil: the end of the log is kept for errors
}

// Agent is a real `plimsoll run` with a configuration of its own.
type Agent struct {
	Setup
	child  *Child
	client *web.Client
	dir    string // configuration and state
	groups *Groups
}

// StartAgent starts an agent on the groups, with the policy none.
func StartAgent(s Setup, groups *Groups) (*Agent, error) {
	dir, err := TempDir("agent")
	if err != nil {
		return nil, err
	}
	a := &Agent{Setup: s, dir: dir, groups: groups}
	a.client = web.Dial(a.Socket())
	if err := a.write(strategy.None); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := a.launch(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := a.await(); err != nil {
		return nil, errors.Join(err, a.Stop())
	}
	return a, nil
}

func (a *Agent) launch() (err error) {
	cmd := exec.Command(a.Binary, append([]string{"run", "--config", a.file(), "--state-dir", a.StateDir(),
		"--cgroup-root", a.Root, "--listen", ""}, a.Flags...)...)
	cmd.Env = append(os.Environ(), a.Env...)
	if a.Stderr != nil {
		cmd.Stderr = a.Stderr
	}
	a.child, err = Launch(cmd, func(int) error { return nil })
	return err
}

// StateDir is where the agent keeps its journal.
func (a *Agent) StateDir() string { return cmp.Or(a.State, filepath.Join(a.dir, "state")) }

// Socket is the agent's control socket.
func (a *Agent) Socket() string { return filepath.Join(a.StateDir(), web.ControlSocket) }

// Kill ends the agent by SIGKILL: what it has written stays.
func (a *Agent) Kill() error { return a.child.Kill() }

// Restart starts the agent once more, with the state of the one that was killed or halted.
func (a *Agent) Restart() error {
	if err := a.launch(); err != nil {
		return err
	}
	return a.await()
}

// Halt ends the agent, which restores what it changed. Its state stays.
func (a *Agent) Halt() error { return a.child.Stop(stopPatience) }

// Restore runs `plimsoll restore` in place of an agent that was killed.
func (a *Agent) Restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	said, err := exec.CommandContext(ctx, a.Binary, "restore", "--state-dir", a.StateDir(), "--cgroup-root",
		a.Root).CombinedOutput()
	if err != nil {
		return fmt.Errorf("plimsoll restore: %w\n%s", err, said)
	}
	return nil
}

// await waits until the agent answers: not every policy shows in a file.
func (a *Agent) await() error {
	ctx := context.Background()
	return a.Await(ctx, func() error { _, err := a.Status(ctx); return err })
}

func (a *Agent) file() string { return filepath.Join(a.dir, "config.yaml") }

// write puts the configuration of a policy in place.
func (a *Agent) write(policy strategy.Policy) error {
	return a.Configure(a.config(a.groups.Base(), policy))
}

// Configure gives the agent another configuration, in one step, so that it cannot read half of it. It reads it within a
// second; the caller waits for the effect.
func (a *Agent) Configure(text string) error {
	draft := a.file() + ".new"
	if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the agent's configuration: %w", err)
	}
	if err := os.Rename(draft, a.file()); err != nil {
		return fmt.Errorf("write the agent's configuration: %w", err)
	}
	return nil
}

// Await waits until what a configuration brings about shows: missing says what does not show yet.
func (a *Agent) Await(ctx context.Context, missing func() error) error {
	if err := a.child.Await(ctx, applyPatience, missing); err != nil {
		return fmt.Errorf("wait for the agent: %w", err)
	}
	return nil
}

// Follow gives the agent another configuration, and waits until what it brings about shows.
func (a *Agent) Follow(ctx context.Context, text string, missing func() error) error {
	if err := a.Configure(text); err != nil {
		return err
	}
	return a.Await(ctx, missing)
}

// config leaves everything but the experiment's own groups alone.
func (s Setup) config(base string, policy strategy.Policy) string {
	text := fmt.Sprintf("strategy: {policy: none}\noverrides:\n  - {cgroup: %q, policy: %s}\n", base+"/*", policy)
	if s.Offline != nil {
		text += fmt.Sprintf("  - {cgroup: %q, policy: none, class: BE}\n", s.Offline.Base()+"/*")
	}
	return text
}

// Child is the agent's process.
func (a *Agent) Child() *Child { return a.child }

// Status reads the agent's status.
func (a *Agent) Status(ctx context.Context) (report.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	s, err := a.client.Status(ctx)
	if err != nil {
		err = errors.Join(a.child.Ended(), err)
	}
	return s, err
}

// Writes counts what the agent has written so far.
func Writes(s report.Status) int64 {
	var n int64
	for _, outcomes := range s.Writes.Results {
		n += outcomes[plan.Applied] + outcomes[plan.Clamped]
	}
	return n
}

// Apply changes the policy and waits until the limit and burst of the groups show it. A raised quota comes and goes;
// so Apply waits afterChange at least.
func (a *Agent) Apply(policy strategy.Policy, groups []string, limit cpu.Bandwidth) error {
	if err := a.write(policy); err != nil {
		return err
	}
	ready := time.Now().Add(afterChange)
	var unreadable error // which ends the wait
	err := a.Await(context.Background(), func() (missing error) {
		missing, unreadable = a.missing(policy, groups, limit)
		if unreadable == nil && missing == nil && time.Now().Before(ready) {
			missing = errors.New("it may come yet")
		}
		return missing
	})
	return errors.Join(err, unreadable)
}

// missing says what the files of the groups do not show yet.
func (a *Agent) missing(policy strategy.Policy, groups []string, limit cpu.Bandwidth) (missing, err error) {
	for _, group := range groups {
		b, err := a.groups.Tree().Bandwidth(group)
		if err != nil {
			return nil, err
		}
		if missing := shows(policy, b, limit, a.groups.canBurst(group)); missing != nil {
			return fmt.Errorf("%s: %w", group, missing), nil
		}
	}
	return nil, nil
}

// shows compares the files of a group with the values of a policy.
func shows(policy strategy.Policy, b, limit cpu.Bandwidth, canBurst bool) error {
	switch {
	case policy.Burst() && canBurst && b.Burst == 0:
		return errors.New("no burst is set")
	case !policy.Burst() && b.Burst != 0:
		return fmt.Errorf("a burst of %v is left", b.Burst)
	case !policy.Quota() && b.Quota != limit.Quota:
		return fmt.Errorf("the quota is %v, the limit %v", b.Quota, limit.Quota)
	}
	return nil
}

// Stop ends the agent, which restores what it changed.
func (a *Agent) Stop() error {
	return errors.Join(a.child.Stop(stopPatience), os.RemoveAll(a.dir))
}
