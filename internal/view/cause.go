package view

import (
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// Cause says in one word why a container stands still.
type Cause string

// The causes.
const (
	NoCause    Cause = ""            // nothing stands still
	OwnLimit   Cause = "own-limit"   // its own limit
	PodLimit   Cause = "pod-limit"   // that of its pod
	AtCap      Cause = "at-cap"      // it has used all that its policy permits in a period
	Budget     Cause = "budget"      // the time above the limit that its policy permits is used up
	Guard      Cause = "guard"       // the node has nothing to spare
	Refused    Cause = "refused"     // the kernel refused a write, or somebody else's value is in the file
	Paused     Cause = "paused"      // somebody has paused it
	Held       Cause = "held"        // the agent writes nothing
	PolicyNone Cause = "policy-none" // nobody has asked for more
	RefillsOff Cause = "refills-off" // refills have no effect here
)

// causeOf says why a container stands still although an agent is there: the first thing that keeps the agent from ending
// its throttles. It comes from fields that the agent sets, and from no text.
func causeOf(s report.Status, c *report.Container, w sums) Cause {
	if w.lost == 0 && w.throttled == 0 {
		return NoCause
	}
	switch {
	case s.Mode == report.Held:
		return Held
	case c.Paused != nil:
		return Paused
	case c.Strategy.Policy == strategy.None:
		return PolicyNone
	case c.Quota.Problem != "" || c.Burst.Problem != "":
		return Refused
	case w.atCap > 0:
		return AtCap
	case c.BudgetLeft != nil && *c.BudgetLeft <= 0:
		return Budget
	case s.Node.State == "overload" || s.Node.State == "cooling":
		return Guard
	case c.RefillsOff != nil || s.Events.RefillsOff != nil:
		return RefillsOff
	case c.Level == "pod":
		return PodLimit
	}
	return OwnLimit
}

// words say what the agent did not do, after "throttled by its own limit of 0.5 CPUs".
func (c Cause) words() string {
	switch c {
	case Held:
		return "; the agent is held and writes nothing"
	case Paused:
		return "; it is paused"
	case PolicyNone:
		return "; its policy is none, so nothing was done about it"
	case Refused:
		return "; a write to its files was refused"
	case AtCap:
		return "; it used all that its policy permits in a period"
	case Budget:
		return "; its time above the limit is used up"
	case Guard:
		return "; the node has nothing to spare"
	case RefillsOff:
		return "; refills have no effect here"
	}
	return ""
}

// waiting is who has waited behind neighbours, in thread time.
type waiting struct {
	name string
	time time.Duration
}

// worthTelling is how much thread time behind neighbours is worth a sentence.
const worthTelling = Window / 100

// sentence says who lost how much wall time in the window, and why. Who stood still by a limit is never said to have waited
// for a neighbour.
func sentence(v View, behind *waiting) string {
	if v.Window <= 0 {
		return "Just begun: who stands still is known in a second."
	}
	span := "the last minute"
	if v.Window < Window {
		span = fmt.Sprintf("the last %.0f s", v.Window.Seconds())
	}
	var losers []Row
	var rest time.Duration
	for _, r := range v.Rows {
		if r.Lost == nil || *r.Lost <= 0 {
			continue
		}
		if losers = append(losers, r); len(losers) > 1 {
			rest += *r.Lost
		}
	}
	switch {
	case len(v.Rows) == 0:
		return "No container is looked after on this node."
	case len(losers) == 0 && behind != nil:
		return fmt.Sprintf("Nobody was throttled in %s; the threads of %s waited %s for CPUs that neighbours had.", span, report.Printable(behind.name), seconds(behind.time))
	case len(losers) == 0:
		return "Nobody stood still in " + span + "."
	}
	text := fmt.Sprintf("%s lost %s of %s: %s%s", report.Printable(losers[0].Name), seconds(*losers[0].Lost), span, limitWords(losers[0]), losers[0].Cause.words())
	if len(losers) > 1 {
		text += fmt.Sprintf("; %d more lost %s", len(losers)-1, seconds(rest))
	}
	return text + "."
}

// limitWords is "throttled by its own limit of 0.5 CPUs".
func limitWords(r Row) string {
	switch {
	case r.Cause == PodLimit && r.Level != "pod":
		return "throttled by the limit of its pod"
	case r.Limit == nil || r.Period <= 0:
		return "throttled"
	}
	return "throttled by its own limit of " + cpus(*r.Limit, r.Period)
}

// cpus is a quota in CPUs, in words.
func cpus(quota, period time.Duration) string {
	text := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.3f", float64(quota)/float64(period)), "0"), ".")
	if text == "1" {
		return "1 CPU"
	}
	return text + " CPUs"
}

// seconds spells a time lost with the precision that it has.
func seconds(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "less than 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
