package features

import (
	"log/slog"
	"os"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/doctor"
	"plimsoll/internal/report"
)

// Tasks finds out whether the tasks of others' groups can be seen.
func Tasks(tree *cgroup.Tree, err error) cgroup.Feature {
	f := cgroup.Feature{Name: doctor.FeatureTasks, State: cgroup.Yes, Detail: "whether a group has tasks can be seen",
		Source: "pidlist_array_load"}
	var hidden bool
	if err == nil && !firstPIDNamespace() {
		hidden, err = tree.HidesTasks(os.Getpid())
	}
	switch {
	case err != nil:
		f.State, f.Detail = cgroup.Unknown, err.Error()
	case hidden:
		f.State, f.Detail = cgroup.No, report.ProblemHiddenTasks
	}
	return f
}

// firstPIDNamespace says whether this process sees those of all others. Its number is the same on every machine
// (include/linux/proc_ns.h, PROC_PID_INIT_INO).
func firstPIDNamespace() bool {
	at, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && at == "pid:[4026531836]"
}

// Sight says what the agent cannot see; "" where it sees everything.
func Sight(tree *cgroup.Tree, log *slog.Logger) string {
	f := Tasks(tree, nil)
	if f.State != cgroup.No {
		return ""
	}
	log.Error(f.Detail)
	return f.Detail
}
