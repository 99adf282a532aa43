package diagnose

import (
	"fmt"
	"math"
	"time"

	"plimsoll/internal/report"
)

const (
	bearable = 0.05 // of the time wanted: less waiting needs no advice
	missing  = 0.01 // of what is reserved and wanted: a smaller shortfall is none
	mostly   = 0.5  // of a wait
)

// What can be done in the configuration (docs/CONFIG.md).
const (
	exclusive = "exclusive CPUs (`exclusive: true` with `reserve`)"
	offline   = "`class: BE` with `colocation`, or a lower cpu.weight"
)

// judge says what was in the way most, and what can be done about it.
func judge(d report.Diagnosed, elapsed time.Duration) (verdict, next string) {
	wanted, received := cpus(d.Wanted, elapsed), cpus(d.Received, elapsed)
	if wanted < report.LittleCPU {
		return fmt.Sprintf("It wanted hardly any CPU (%.3f CPUs): a lack of CPU does not slow it.", wanted), ""
	}
	worst := heaviest(d)
	waited := 1 - received/wanted
	if worst == nil || waited < bearable {
		verdict = fmt.Sprintf("It received %s of the CPU time that it wanted: it is not short of CPU.",
			percent(1-waited))
	} else {
		verdict, next = blame(d, *worst, wanted, received)
		verdict, next = kept(d, elapsed, worst.Cause, verdict, next)
	}
	return beside(d, verdict, next)
}

// kept adds a sentence where the container received what it reserved, and wanted more.
func kept(d report.Diagnosed, elapsed time.Duration, cause report.Cause, verdict, next string) (string, string) {
	if d.Reserved == nil || d.Short == nil {
		return verdict, next
	}
	due := min(*d.Reserved, cpus(d.Wanted, elapsed)) * elapsed.Seconds()
	if d.Short.Seconds() >= missing*due {
		return verdict, next
	}
	verdict = fmt.Sprintf("It received what it reserved (%.2f CPUs), and it wanted more. ", *d.Reserved) + verdict
	if cause == report.CauseNeighbour {
		next = "raise its request, if it needs more than that; else " + next
	}
	return verdict, next
}

// beside adds what no wait shows: the other hardware thread of a core lowers the speed and takes no time.
func beside(d report.Diagnosed, verdict, next string) (string, string) {
	part := ratio(d.Beside, d.Received)
	if part < mostly {
		return verdict, next
	}
	verdict += fmt.Sprintf(" For %s of the time that it ran, the core's other hardware thread ran another group, "+
		"which makes both slower.", percent(part))
	if next == "" {
		next = "if it is slow all the same, keep its cores free of others: `coreExpeller` with `colocation`, or " +
			exclusive + " and a request of whole cores"
	}
	return verdict, next
}

// blame speaks of one cause.
func blame(d report.Diagnosed, worst report.Wait, wanted, received float64) (verdict, next string) {
	part := worst.Time.Seconds() / d.Wanted.Seconds()
	switch worst.Cause {
	case report.CauseOwnLimit:
		return throttled(d, "its own limit", d.Limit, part, wanted)
	case report.CausePodLimit:
		return throttled(d, "a limit above it (its pod's)", d.PodLimit, part, wanted)
	case report.CauseNeighbour:
		return behind(d, part)
	case report.CauseOwnThreads:
		return fmt.Sprintf("Its threads waited for each other for %s of the time that they wanted: on average %.1f "+
			"wanted to run, on %.2f CPUs.", percent(part), wanted, received), "run fewer threads, or give it more CPUs"
	case report.CauseKernel:
		return fmt.Sprintf("For %s of the time that it wanted, kernel threads had the CPU.", percent(part)),
			"see which: `top -H` and /proc/interrupts; storage and network work can be bound to other CPUs"
	case report.CauseInterrupts:
		return fmt.Sprintf("Interrupts took %s of the time that it wanted.",
			percent(part)), "bind interrupts to other CPUs (/proc/irq/*/smp_affinity_list)"
	case report.CauseHypervisor:
		return fmt.Sprintf("The hypervisor took %s of the time that it wanted.",
			percent(part)), "the machine itself is short of CPU: take a larger or another one"
	case report.CauseIdle:
		return fmt.Sprintf("For %s of the time that it wanted, an idle CPU was waking up.",
			percent(part)), "shallower sleep states (cpupower idle-set), if this latency matters"
	}
	return fmt.Sprintf("It waited for %s of the time that it wanted; the cause is not known.",
		percent(part)), "diagnose for longer: --for 60s"
}

// heaviest is the cause to speak of: that of the largest part of the shortfall, and without one, of the waits.
func heaviest(d report.Diagnosed) *report.Wait {
	var best *report.Wait
	for i := range d.Waits {
		w := &d.Waits[i]
		if best == nil || w.Short > best.Short || w.Short == best.Short && w.Time > best.Time {
			best = w
		}
	}
	return best
}

// throttled distinguishes a limit that is too low from a limit that only peaks reach.
func throttled(d report.Diagnosed, whose string, limit *float64, part, wanted float64) (verdict, next string) {
	verdict = fmt.Sprintf("It was throttled by %[2]s for %[1]s of the time that it wanted.", percent(part), whose)
	above := "its"
	if whose != "its own limit" {
		above = "the pod's"
	}
	switch {
	case limit == nil:
		return verdict, "raise " + above + " limit, or let it burst (`plimsoll run --policy auto`)"
	case d.Received.Seconds() >= 0.9**limit*d.Wanted.Seconds()/wanted:
		return verdict + fmt.Sprintf(" The limit is %.2f CPUs and it used nearly all of it.", *limit),
			fmt.Sprintf("raise %s limit; %.2f CPUs were wanted on average, which its waiting makes larger than its "+
				"need", above, wanted)
	}
	return verdict + fmt.Sprintf(" The limit is %.2f CPUs and it used less on average: its peaks run into it.", *limit),
		"let it burst: `plimsoll run --policy auto`; `plimsoll advise` says how far"
}

// behind names the neighbour, and says what kind of queue it was.
func behind(d report.Diagnosed, part float64) (verdict, next string) {
	verdict = fmt.Sprintf("It waited behind others in a run queue for %s of the time that it wanted", percent(part))
	if len(d.Neighbours) == 0 {
		return verdict + ".", "diagnose for longer: --for 60s"
	}
	first := d.Neighbours[0]
	var all, phantom, forced time.Duration
	for _, n := range d.Neighbours {
		all, phantom, forced = all+n.Time, phantom+n.Phantom, forced+n.Forced
	}
	verdict += fmt.Sprintf(", %s of that behind %s.", percent(ratio(first.Time, all)), first.Name)
	switch {
	case ratio(phantom, all) >= mostly:
		return verdict + fmt.Sprintf(" In %s of it a CPU that it may use was idle.", percent(ratio(phantom, all))),
			"see whether its threads, or the neighbour's, are bound to CPUs (taskset -p, cpuset.cpus); " + exclusive +
				" end it"
	case ratio(forced, all) >= mostly:
		return verdict +
				fmt.Sprintf(" In %s of it the others received all that they reserved (one CPU, where no request is "+
					"known) on other CPUs.", percent(ratio(forced, all))),
			"give it " + exclusive + ", or " + lower(first)
	}
	return verdict, lower(first) + ", or give it " + exclusive
}

// lower is how a neighbour is put behind: a group has a weight, what is outside of all groups has none.
func lower(n report.Neighbour) string {
	if n.Cgroup == "/" {
		return "put the processes that belong to no group into one of a lower priority"
	}
	return "lower the priority of " + n.Name + " (" + offline + ")"
}

func cpus(t, elapsed time.Duration) float64 {
	if elapsed <= 0 {
		return 0
	}
	return t.Seconds() / elapsed.Seconds()
}

func ratio(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return part.Seconds() / whole.Seconds()
}

func percent(x float64) string { return fmt.Sprintf("%.0f %%", math.Abs(100*x)) }
