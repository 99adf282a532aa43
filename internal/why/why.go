// Package why says in one paragraph why a container stands still: what stands still, why, what Plimsoll did about it,
// and what a person can do.
//
// # Problem
//
// Who is woken at night has a name and a minute. A table of counters is an answer to somebody else's question.
//
// # Approach
//
// Four sentences, each from one fact of a view: the time lost, its cause, what is changed now, and the step that would
// change the cause. A container that lost nothing is told so first, with what could be the reason instead.
//
// # Known limits
//
// It is about limits. Who waits behind neighbours is told by `plimsoll diagnose`, which measures them.
package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/printable"
	"plimsoll/internal/report"
	"plimsoll/internal/view"
)

// Rows are those that a person means: of a pod, or by a part of a name. The ones that lost most come first.
func Rows(v view.View, arg string) []view.Row {
	var exact, part []view.Row
	for _, r := range v.Rows {
		switch {
		case r.Name == arg || r.Pod == arg || r.ID == arg || strings.HasSuffix(r.Name, "/"+arg) ||
			strings.HasSuffix(r.Pod, "/"+arg):
			exact = append(exact, r)
		case strings.Contains(strings.ToLower(r.Name+" "+r.Pod+" "+r.ID), strings.ToLower(arg)):
			part = append(part, r)
		}
	}
	if len(exact) > 0 {
		part = exact
	}
	part = telling(part)
	slices.SortStableFunc(part, func(a, b view.Row) int { return int(lost(b) - lost(a)) })
	return part
}

// telling are the rows that have something to tell, if any has: containers with a limit, and what lost time. A pod's
// sandbox has no limit, and a pod says what its containers say, or they what it says.
func telling(rows []view.Row) []view.Row {
	tell := slices.DeleteFunc(slices.Clone(rows), func(r view.Row) bool {
		_, byPod := throttledPod(rows, r)
		return lost(r) == 0 && (r.Limit == nil || r.Level == "pod" || byPod)
	})
	if len(tell) == 0 {
		return rows
	}
	return tell
}

// throttledPod is the row of a container's pod that lost more than the container. A pod has a row of its own where one
// of its containers has no limit; else its time lost is in their rows.
func throttledPod(rows []view.Row, r view.Row) (pod view.Row, found bool) {
	for _, pod := range rows {
		if pod.Level == "pod" && strings.HasPrefix(r.ID, pod.ID+"/") && lost(pod) > lost(r) {
			return pod, true
		}
	}
	return pod, false
}

// Paragraph explains one row of a view. diagnose is the command that measures waits, as it is called here, and word
// spells an argument for a shell.
func Paragraph(v view.View, r view.Row, diagnose string, word func(string) string) string {
	var sentences []string
	if pod, found := throttledPod(v.Rows, r); found {
		sentences = []string{r.Name + " stood still with its pod, whose limit is for all its containers.", requests(r)}
		r = pod
	}
	sentences = append(sentences, what(v, r))
	if lost(r) > 0 {
		sentences = append(sentences, cause(v, r))
	}
	sentences = append(sentences, did(v, r), requests(r), todo(r, diagnose, word))
	text := strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), " ")
	return printable.Text(report.Called(text, v.Flags))
}

func lost(r view.Row) time.Duration {
	if r.Lost == nil {
		return 0
	}
	return *r.Lost
}

// what stands still, and for how long.
func what(v view.View, r view.Row) string {
	window := v.Window.Round(time.Second)
	switch {
	case r.Limit == nil:
		return fmt.Sprintf("%s has no CPU limit: it stands still at none.", r.Name)
	case r.Lost == nil:
		return fmt.Sprintf("%s was not counted yet.", r.Name)
	case *r.Lost == 0:
		return fmt.Sprintf("%s lost no time at its limit of %s CPUs in the last %s.", r.Name, cpus(r, r.Limit), window)
	}
	lost := "less than 1ms"
	if *r.Lost >= time.Millisecond {
		lost = r.Lost.Round(time.Millisecond).String()
	}
	text := fmt.Sprintf("%s stood still for %s of the last %s", r.Name, lost, window)
	if r.Throttled != nil && *r.Throttled > 0 {
		text += fmt.Sprintf(", in %d of its periods", *r.Throttled)
	}
	return text + "."
}

// cause is why, with the numbers that it depends on.
func cause(v view.View, r view.Row) string {
	demand := ""
	if r.Peak != nil {
		demand = fmt.Sprintf(" It used up to %.2f CPUs in one period.", *r.Peak)
	}
	limit := "Its limit is " + cpus(r, r.Limit) + " CPUs"
	switch r.Cause {
	case view.PodLimit:
		if r.Level != "pod" {
			return "The limit of its pod was used up, not its own." + demand
		}
	case view.AtCap:
		return limit + ", and in these periods it used all that its policy (" + r.Policy + ") permits." + demand
	case view.LoadLine:
		return limit + ", and the node's load line cuts what its policy (" + r.Policy + ") permits." + demand
	case view.ExtraCores:
		return limit + ", and an administrator's bound on CPUs above limits is used up." + demand
	case view.Budget:
		return limit + ", and the time above it that its policy permits is used up." + demand
	case view.Guard:
		return limit + fmt.Sprintf(", and the node has nothing to spare: %.2f of %.2f CPUs are used.", v.Mark.Node.Used,
			v.Mark.Node.Capacity) + demand
	case view.Refused:
		return limit + ", and a write was refused: " + strings.TrimSuffix(r.Problem, ".") + "." + demand
	case view.Paused:
		return limit + ", and somebody has paused it." + demand
	case view.Held:
		return limit + ", and the agent is held: it writes nothing." + demand
	case view.PolicyNone:
		return limit + ", and its policy is none: nobody has asked for more." + demand
	case view.RefillsOff:
		return limit + ", and refills have no effect here." + demand
	}
	return limit + ", and its work came faster than that." + demand
}

// did is what Plimsoll has done. A quota that the agent did not request is another program's, as is a burst that is not
// the agent's.
func did(v view.View, r view.Row) string {
	var done []string
	if r.Refills != nil && *r.Refills > 0 {
		done = append(done, fmt.Sprintf("ended or prevented %d throttles by refills", *r.Refills))
	}
	if r.Quota != nil && r.Limit != nil && *r.Quota > *r.Limit && r.QuotaAsked != nil && *r.Quota == *r.QuotaAsked {
		done = append(done, "raised its quota to "+cpus(r, r.Quota)+" CPUs")
	}
	if r.Burst > 0 && r.BurstChanged {
		done = append(done, fmt.Sprintf("lets it save up to %s of unused time", r.Burst))
	}
	text := ""
	switch len(done) {
	case 0:
		if lost(r) > 0 {
			text = "Plimsoll did nothing about it."
		}
	default:
		text = "Plimsoll " + strings.Join(done, ", and ") + "."
	}
	if r.Why != "" && v.Mode != report.Held {
		text = strings.TrimSpace(text + " Its last decision: " + strings.TrimSuffix(r.Why, ".") + ".")
	}
	return text
}

// requests is how long the container takes to answer, where that is measured.
func requests(r view.Row) string {
	q := r.Requests
	if q == nil || q.Answered+q.Doubtful == 0 {
		return ""
	}
	return "Its requests, in the last whole minute: " + q.Line() + "."
}

// todo is what a person can do.
func todo(r view.Row, diagnose string, word func(string) string) string {
	switch {
	case r.Limit == nil || r.Lost == nil || lost(r) == 0:
		return "If it is slow, something else keeps it from a CPU: " + diagnose + " measures what."
	case r.Cause == view.AtCap && strings.HasPrefix(strings.ToLower(r.Policy), "cpuburstonly"):
		return "To do: a policy that may raise the quota (auto), or a higher limit."
	case r.Cause == view.AtCap, r.Cause == view.Budget:
		return "To do: raise its limit, or let its policy permit more (cfsQuotaBurstPercent, " +
			"cfsQuotaBurstPeriodSeconds)."
	case r.Cause == view.LoadLine:
		return "To do: raise its limit, move work off this node, or lower loadLinePercent; a policy that permits " +
			"more changes nothing."
	case r.Cause == view.ExtraCores:
		return "To do: raise its limit, or have an administrator raise the bound (`plimsoll status` names it, " +
			"under cut)."
	case r.Cause == view.Guard:
		return "To do: move work off this node, or raise sharePoolThresholdPercent; reserve for it what it must have."
	case r.Cause == view.Refused:
		return "To do: see `plimsoll doctor`, and which program writes its files."
	case r.Cause == view.Paused:
		return "To do: `plimsoll resume " + word(r.ID) + "` ends the pause."
	case r.Cause == view.Held:
		return "To do: `plimsoll resume` ends the hold."
	case r.Cause == view.PolicyNone:
		return "To do: set its policy to auto, or raise its limit."
	case r.Cause == view.PodLimit:
		return "To do: raise the pod's limit; that of the container is not in the way."
	case r.Cause == view.RefillsOff:
		return "To do: see `plimsoll doctor`; quotas are raised meanwhile."
	}
	return "To do: nothing, if the time lost is small; else raise its limit, for which `plimsoll advise --live` " +
		"has a figure."
}

// cpus is an amount a period, in CPUs.
func cpus(r view.Row, d *time.Duration) string {
	if d == nil || r.Period <= 0 {
		return "unlimited"
	}
	return fmt.Sprintf("%.2f", d.Seconds()/r.Period.Seconds())
}
