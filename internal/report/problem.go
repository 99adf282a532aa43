package report

// The problems that a status reports: what a text means, and after "Do:" what to do. docs/REFERENCE.md is made of these
// comments, and package arch keeps the texts of problems here.
const (
	// The file of a new configuration has an error. Do: mend the file; the line names the field.
	ProblemConfig = "configuration: %s (the last good one is in force)"
	// The host, Docker or the API server cannot say which containers run; the last known state is kept. Do:
	// see the error.
	ProblemDiscovery = "containers cannot be found: %s"
	// The globs of the configuration match nothing, and nothing else is managed. Do: correct the glob.
	ProblemNothingNamed = "nothing is managed: no control group matches %s (hint: `plimsoll plan` lists the groups " +
		"that have a limit)"
	// The agent runs in a PID namespace of its own, on cgroup v1. Do: as the hint says.
	ProblemHiddenTasks = "the tasks of other control groups cannot be seen: all of them look empty, and nothing is " +
		"written; hint: in a pod, " +
		"hostPID: true; in a container, --pid=host"
	// The kernel does not let the agent read the group. Do: see the error; the agent needs root.
	ProblemUnreadable = "%s: cannot be read: %v"

	// A value that is neither the owner's nor Plimsoll's. Do: find that program.
	// With the agent stopped, `plimsoll restore --to-spec` on the node itself sets the limit.
	ProblemForeign = "%s: another program set the %s to %s; it is left alone (limit %s)"
	// Another agent has left a limit that its owner did not declare. Do: as the hint says.
	ProblemNotDeclared = "%s: %s is %s, declared is %s; hint: stop the agent, then " +
		"`plimsoll restore --to-spec` on the node itself, not in a pod"
	// The declared limit has not been in force for 3 s. Do: nothing.
	ProblemOwnersWriteLost = "%s: the declared %s is %s, and the file holds %s: %s; the agent writes it for the owner"
	// An owner wrote the quota during a refill, and the kernel may have set it back. Do: write it again.
	ProblemOwnersWriteUndone = "%s: another program wrote the quota during a refill, and the quota is still %s: " +
		"the kernel may have undone the write; hint: write it again"
	// The kernel refused a value: no permission, or a limit of the hierarchy. Do: see the error.
	ProblemRefused = "%s: refused %s to %s: %s"
	// Another program wrote the file between a decision and its write. Do: find it, if this is frequent.
	ProblemTrampled = "%s: trampled %s to %s: %s"
	// A group left the configuration, or a former agent ended, and the kernel refuses the original value; it is tried
	// again. Do: see the error.
	ProblemNotRestored = "%s: its %s is not restored to %s: %s"

	// Such a limit is too low: bursting does not cure that. Do: raise the limit; `plimsoll advise` says to what.
	ProblemLimitTooLow = "%s: the limit is too low: throttled in more than half of the periods of the last minute; " +
		"hint: raise the limit"
	// Three refills of the group in a row did not end its throttles. Do: nothing; see KERNEL.md, Ending a throttle.
	ProblemRefillsOff = "%s: refills have no effect: its throttles are answered by raises of the quota, and by a " +
		"refill again " +
		"from %s on; hint: " + refillsHint
	// Three refills in a row, each in another tenant, had no effect. Do: see refill-on-rewrite in `plimsoll doctor`.
	ProblemRefillsOffNode = "refills have no effect on this node: throttles are answered by raises of the quota, " +
		"and by a refill again " +
		"from %s on; hint: " + refillsHint
	// Groups with a limit run on more CPUs, all together, than the programs have room for (24,576 pairs). Do: nothing,
	// or have fewer of them.
	ProblemUnplaced = "the kernel's programs have no room for all CPUs of all groups: the use of some groups is not " +
		"in the record, and what refills hand out counts against their cap in its place"
	// More control groups, all together, than `run --waits` has numbers for (4,096). Do: find who makes so many groups.
	ProblemWaitsMissing = "waits: %d containers are not measured, because the table of control groups is full"
	// More control groups outside of containers than `run --waits` tells apart. Do: nothing, or find who makes so many.
	ProblemWaitsNames = "waits: the node has more control groups than are told apart, and some neighbours have the " +
		"name of the group above them"
	// A receipt shows that refills harm the container or its neighbours. Do: as the hint says, or nothing.
	ProblemWithdrawn = "%s: refills are withdrawn: its receipt says that refilling it %s; hint: %s"
	// The file of the receipts cannot be written. Do: see the error.
	ProblemReceipts = "the receipts are not kept, and a restart of the agent begins them anew: %s"

	// A sched_ext scheduler that is not Plimsoll's is loaded. Do: unload it, or do without bursts.
	ProblemOtherScheduler = "the sched_ext scheduler %s runs all tasks: the kernel enforces no quota and no burst, " +
		"and none is raised meanwhile"
	// The scheduler of mechanism `schedExt` cannot be used; `cpu.idle` is in force, and it is tried again. Do:
	// see the error.
	ProblemSchedulerNotLoaded = "the scheduler cannot be loaded: %v"
	// The scheduler of mechanism `schedExt` does not take a setting, or does not say whether it runs. Do:
	// see the error.
	ProblemScheduler = "the scheduler: %v"
	// The kernel has ended the scheduler of mechanism `schedExt`; it is loaded again later. Do: see `dmesg`.
	ProblemSchedulerEnded = "the scheduler has ended: %s"
	// A file of the group does not hold what it should. Do: see the reason.
	ProblemPriority = "%s: %s: %s"
	// The reason in such a line: a value that is neither the owner's nor Plimsoll's. Do: find the other program.
	ProblemPriorityForeign = "another program set it to %s; left alone"
	// `colocation` cannot give the group a priority. Do: as the hint says.
	ProblemNoPriority = "%s: has no such file: the group above does not enable the cpu controller; hint: give a " +
		"unit beside it a " +
		"CPUWeight=, or write +cpu to the cgroup.subtree_control above"
	// Offline work does not stand back behind all online work. Do: as the hint says.
	ProblemExposed = "%s: offline, and some online work is no sibling of it: that work competes with the group " +
		"above it, at the weight " +
		"of that group; hint: give offline pods no CPU request, so that they are BestEffort"
	// `loadLinePercent` cannot be computed. Do: see the reason.
	ProblemLoadLine = "loadLinePercent: %v"
	// The node is too full for the target of `loadLinePercent`. Do: as the hint says.
	ProblemLoadLineMissed = "loadLinePercent: the demands coincide too often even without any burst; hint: fewer " +
		"pods, or lower limits"

	// `reserve` does nothing. Do: see the reason.
	ProblemReserve = "exclusive CPUs: %v"
	// A container asks for exclusive CPUs, and has none. Do: see the arithmetic of the reason.
	ProblemNoExclusiveCPUs = "%s: no exclusive CPUs: %s"
	// A group can still run on CPUs that belong to others. Do: see the reason.
	ProblemNotConfined = "%s: not confined to the share pool: %s"
	// The CPUs of a group cannot be put back; it is tried again. Do: see the error.
	ProblemCPUsNotRestored = "%s: its %s could not be restored to %q: %s"
	// `shield` of `reserve`: the tasks in the root of the cpuset hierarchy cannot be moved. Do: see the error.
	ProblemShield = "shield: %v"
	// `shield` of `reserve`: its group still has tasks. Do: see the error.
	ProblemShieldStays = "%s: not removed: %s"
	// `shield` of `reserve` does nothing on cgroup v2. Do: use policy `auto` of `reserve`.
	ProblemShieldV2 = "shield: cgroup v2 has no cpuset hierarchy of its own; with policy auto, from 6.7, a " +
		"partition takes its CPUs " +
		"from the tasks of the root"

	// The API server does not answer; the last known state stays in force. Do: see the error.
	ProblemKubernetes = "kubernetes: %s"
	// The API server lists no pods for such a node, so nothing is done for them. Do: as the hint says.
	ProblemNoNode = "kubernetes: there is no node %s; hint: name it with --node-name, as `kubectl get nodes` does"
	// A field of an annotation, a label or a ConfigMap is bad. Do: correct it; the line says where.
	ProblemRejected = "%s: rejected, the last good value stays in force"
	// The text of the status lists 20 of them. Do: as the hint says.
	ProblemMoreRejected = "%d more fields of Kubernetes objects are rejected (hint: `plimsoll status --json` lists " +
		"them in kubernetes.rejected)"

	// Without an agent: a reboot has removed everything. Do: nothing.
	ProblemOtherBoot = "the journal is of an earlier boot: its control groups and their values are gone"
	// Without an agent: a process that is not an agent has locked the control groups. Do: as the hint says.
	ProblemLocked = "the control groups are locked: %s (hint: %s)"
	// Without an agent: a quota or burst of Plimsoll's is still in force. Do: as the hint says.
	ProblemLeftLimit = "%s: changed although no agent runs (hint: `plimsoll restore` puts it back)"
	// Without an agent: another file still has a value of Plimsoll's. Do: as the hint says.
	ProblemLeft = "%s: %s is %q in place of %q although no agent runs (hint: `plimsoll restore` puts it back)"
	// Without an agent: the group of the shield still has tasks. Do: as the hint says.
	ProblemLeftShield = "%s: %d tasks of the root are kept in it although no agent runs (hint: `plimsoll restore` " +
		"puts them back)"
	// Without an agent: the journal names the file, and another program has written it since. Do: nothing.
	ProblemNotOurs = "has a value that is not ours: a restore leaves it alone"
	// Without an agent: an entry of the journal cannot be read. Do: see the error.
	ProblemJournal = "journal: %v"

	// In `kubectl plimsoll top`: the agent of this node writes nothing. Do: `plimsoll resume` there, when it is over.
	ProblemNodeHeld = "%s: the agent is held"
)

const refillsHint = "see refill-on-rewrite in `plimsoll doctor`"
