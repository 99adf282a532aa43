package task

import (
	"fmt"

	"plimsoll/internal/capability"
)

// cookieWhy says why this process cannot give cookies to tasks of other users, "" where it can. The kernel checks
// whether it may trace them (kernel/sched/core_sched.c, sched_core_share_pid: ptrace_may_access). The check also
// refuses root where the other one has a capability that it lacks (security/commoncap.c, cap_ptrace_access_check).
func cookieWhy() string { return without(capability.Ptrace, "cookie") }

// sliceWhy says the same of slices, which the tasks of another user take from CAP_SYS_NICE only
// (kernel/sched/syscalls.c, user_check_sched_setscheduler).
func sliceWhy() string { return without(capability.Nice, "slice") }

// without says that this process cannot give something to the tasks of others, because it lacks a capability; "" where
// it has it.
func without(needed capability.Capability, what string) string {
	switch missing, err := capability.Missing(needed); {
	case err != nil:
		return fmt.Sprintf("could not read whether this process has %s: %v", needed, err)
	case len(missing) > 0:
		return fmt.Sprintf("without %s a %s cannot be given to the tasks of others (docs/KERNEL.md)", needed, what)
	}
	return ""
}
