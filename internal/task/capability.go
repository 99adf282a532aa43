package task

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cookieWhy says why this process cannot give cookies to tasks of other users, "" where it can. The kernel checks
// whether it may trace them (kernel/sched/core_sched.c, sched_core_share_pid: ptrace_may_access). The check also
// refuses root where the other one has a capability that it lacks (security/commoncap.c, cap_ptrace_access_check).
func cookieWhy() string { return lacks("CAP_SYS_PTRACE", unix.CAP_SYS_PTRACE, "cookie") }

// sliceWhy says the same of slices, which the tasks of another user take from CAP_SYS_NICE only (kernel/sched/syscalls.c,
// user_check_sched_setscheduler).
func sliceWhy() string { return lacks("CAP_SYS_NICE", unix.CAP_SYS_NICE, "slice") }

// lacks says which capability this process would need to give something to the tasks of others; "" where it has it.
func lacks(name string, capability uint, what string) string {
	status, err := os.ReadFile("/proc/self/status")
	has := false
	if err == nil {
		has, err = capable(string(status), capability)
	}
	switch {
	case err != nil:
		return "whether " + name + " is there is not known: " + err.Error()
	case !has:
		return "without " + name + " a " + what + " cannot be given to the tasks of others (docs/KERNEL.md)"
	}
	return ""
}

// capable says whether a capability is in effect, from the status of a process (fs/proc/array.c, task_cap).
func capable(status string, capability uint) (bool, error) {
	for line := range strings.Lines(status) {
		text, is := strings.CutPrefix(line, "CapEff:")
		if !is {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		if err != nil {
			return false, fmt.Errorf("CapEff: %w", err)
		}
		return set>>capability&1 == 1, nil
	}
	return false, errors.New("no CapEff in the status of this process")
}
