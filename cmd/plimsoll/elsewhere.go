package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"plimsoll/internal/lock"
	"plimsoll/internal/web"
)

// elsewhere replaces the error that no agent is running, where an agent has the lock of the control groups all the
// same: it listens in another state directory, or does not listen yet. Any other error stays as it is.
func (g *globals) elsewhere(err error) error {
	if !errors.Is(err, web.ErrNoAgent) {
		return err
	}
	locked := g.holder()
	if locked == nil || locked.Stranger {
		return err
	}
	who := fmt.Sprintf("process %d", locked.PID)
	if locked.PID == 0 {
		who = "a process that cannot be seen from here"
	}
	return withHint(fmt.Errorf("%w in %s: %s is the agent of %s", web.ErrNoAnswer, g.stateDir, who, locked.Root), g.stateDirHint(locked))
}

// holder is the process that has the lock of the control groups; nil: none, or there are no control groups to lock.
func (g *globals) holder() *lock.TakenError {
	dir, tree, err := g.openTree()
	if err != nil {
		return nil
	}
	defer dir.Close()
	locked, err := lock.Holder((&machine{tree: tree}).place(g))
	if err != nil {
		return nil
	}
	return locked
}

// stateDirHint says how to reach an agent that does not answer in this state directory.
func (g *globals) stateDirHint(locked *lock.TakenError) string {
	dir := stateDirOf(locked.PID)
	switch dir {
	case "":
		return "give the --state-dir that it was started with"
	case g.stateDir:
		return "it is starting or ending: try again; in a container, it has a " + g.stateDir + " of its own"
	}
	return "it was started with another state directory: give --state-dir " + word(dir)
}

// stateDirOf is the state directory of an agent, by its command line; "" where that cannot be read or is none of an agent.
func stateDirOf(pid int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || pid == 0 {
		return ""
	}
	return parseStateDir(line)
}

// parseStateDir reads the arguments of a process, each of which ends with a zero byte (proc_pid_cmdline(5)).
func parseStateDir(cmdline []byte) string {
	args := strings.Split(string(bytes.TrimSuffix(cmdline, []byte{0})), "\x00")
	dir, agent := defaultStateDir, false
	for i, arg := range args {
		agent = agent || arg == "run"
		if value, ok := strings.CutPrefix(arg, "--state-dir="); ok {
			dir = value
		} else if arg == "--state-dir" && i+1 < len(args) {
			dir = args[i+1]
		}
	}
	if !agent {
		return ""
	}
	return dir
}
