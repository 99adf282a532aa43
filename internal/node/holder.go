package node

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"plimsoll/internal/hint"
	"plimsoll/internal/lock"
)

// DefaultStateDir is where the state of an agent is without --state-dir.
const DefaultStateDir = "/run/plimsoll"

// Holder is the process that has the lock of the control groups; nil: none, or there are no control groups to lock.
func (d Dirs) Holder() *lock.TakenError {
	dir, tree, err := d.OpenTree()
	if err != nil {
		return nil
	}
	defer dir.Close()
	locked, err := lock.Holder((&Node{Dirs: d, Tree: tree}).place())
	if err != nil {
		return nil
	}
	return locked
}

// StateDirHint says how to reach an agent that has the lock and does not answer in this state directory.
func (d Dirs) StateDirHint(locked *lock.TakenError) string {
	dir := stateDirOf(locked.PID)
	switch dir {
	case "":
		return "give the --state-dir that it was started with"
	case d.StateDir:
		return "it is starting or ending: try again; in a container, it has a " + d.StateDir + " of its own"
	}
	return "it was started with another state directory: give --state-dir " + hint.Word(dir)
}

// stateDirOf is the state directory of an agent, by its command line;
// "" where that cannot be read or is none of an agent.
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
	dir, agent := DefaultStateDir, false
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
