package experiment

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
)

const (
	settle        = 500 * time.Millisecond // after a change of policy, for what cannot be seen in a file
	applyPatience = 10 * time.Second       // the agent starts, reads its configuration and writes
	stopPatience  = 15 * time.Second       // the agent restores what it changed
)

// Agent is a real `plimsoll run` with a configuration of its own.
type Agent struct {
	child  *Child
	dir    string // configuration and state
	groups *Groups
	policy strategy.Policy
}

// StartAgent starts the agent of a binary on the groups, with the policy none.
func StartAgent(binary, root string, groups *Groups) (*Agent, error) {
	dir, err := TempDir("agent")
	if err != nil {
		return nil, err
	}
	a := &Agent{dir: dir, groups: groups}
	if err := a.write(strategy.None); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	cmd := exec.Command(binary, "run", "--config", a.file(), "--state-dir", filepath.Join(dir, "state"),
		"--cgroup-root", root, "--listen", "")
	if a.child, err = Launch(cmd, func(int) error { return nil }); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return a, nil
}

func (a *Agent) file() string { return filepath.Join(a.dir, "config.yaml") }

// write puts the configuration in place in one step, so that the agent cannot read half of it.
func (a *Agent) write(policy strategy.Policy) error {
	draft := a.file() + ".new"
	if err := os.WriteFile(draft, []byte(agentConfig(a.groups.Base(), policy)), 0o600); err != nil {
		return fmt.Errorf("write the agent's configuration: %w", err)
	}
	if err := os.Rename(draft, a.file()); err != nil {
		return fmt.Errorf("write the agent's configuration: %w", err)
	}
	a.policy = policy
	return nil
}

// agentConfig leaves everything but the experiment's own groups alone.
func agentConfig(base string, policy strategy.Policy) string {
	return fmt.Sprintf("strategy: {policy: none}\noverrides:\n  - {cgroup: %q, policy: %s}\n", base+"/*", policy)
}

// Apply changes the policy and waits until the limit and burst of the groups show it. A raised quota comes and goes;
// for that there is a time to settle.
func (a *Agent) Apply(policy strategy.Policy, groups []string, limit cpu.Bandwidth) error {
	if err := a.write(policy); err != nil {
		return err
	}
	settled := time.Now().Add(settle)
	deadline := time.Now().Add(applyPatience)
	for {
		if err := a.child.Ended(); err != nil {
			return fmt.Errorf("the agent does not run: %w", err)
		}
		missing, err := a.missing(policy, groups, limit)
		now := time.Now()
		switch {
		case err != nil:
			return err
		case missing == nil && now.After(settled):
			return nil
		case missing != nil && now.After(deadline):
			return fmt.Errorf("the agent has not applied policy %s within %v: %w\n%s", policy, applyPatience, missing, a.child.said)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// missing says what the files of the groups do not show yet.
func (a *Agent) missing(policy strategy.Policy, groups []string, limit cpu.Bandwidth) (missing, err error) {
	for _, group := range groups {
		b, err := a.groups.Tree().Bandwidth(group)
		if err != nil {
			return nil, err
		}
		if missing := shows(policy, b, limit, a.groups.CanBurst(group)); missing != nil {
			return fmt.Errorf("%s: %w", group, missing), nil
		}
	}
	return nil, nil
}

// shows compares the files of a group with what a policy makes of them.
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
