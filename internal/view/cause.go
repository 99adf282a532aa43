package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// Why time was lost.
//
// Problem: what is lost is summed over a minute, and what keeps the agent from ending a throttle (the node's state, a
// pause, a budget) changes from one second to the next. The state of now is not the cause
// of what was lost a minute ago.
//
// Approach: what each snapshot finds lost has the cause of that snapshot. The cause of a minute is that of the largest
// part of its loss, and the words say until when time was lost.
//
// Known limits: a cause that lasts for less than the second between two snapshots is not seen.

// Cause says in one word why a container stood still.
type Cause string

// The causes.
const (
	NoCause    Cause = ""            // nothing was lost
	OwnLimit   Cause = "own-limit"   // its own limit
	PodLimit   Cause = "pod-limit"   // that of its pod
	AtCap      Cause = "at-cap"      // it had used all that its policy permits in a period
	LoadLine   Cause = "load-line"   // it had used all that the node's load line leaves of what its policy permits
	ExtraCores Cause = "extra-cores" // it had used all that an administrator's bound on CPUs above limits leaves
	Budget     Cause = "budget"      // the time above the limit that its policy permits was used up
	Guard      Cause = "guard"       // the node had nothing to spare
	Refused    Cause = "refused"     // the kernel refused a write, or somebody else's value is in the file
	Paused     Cause = "paused"      // somebody had paused it
	Held       Cause = "held"        // the agent wrote nothing
	PolicyNone Cause = "policy-none" // nobody had asked for more
	RefillsOff Cause = "refills-off" // refills had no effect here
)

// causeOf says why a container stands still although an agent is there: the first thing that keeps the agent from
// ending its throttles. It comes from fields that the agent sets, and from no text.
// lost is what this snapshot has found.
func causeOf(s *report.Status, c *report.Container, lost sums) Cause {
	switch {
	case s.Mode == report.Held:
		return Held
	case c.Paused != nil:
		return Paused
	case c.Strategy.Policy == strategy.None:
		return PolicyNone
	case c.Quota.Problem != "" || c.Burst.Problem != "":
		return Refused
	case lost.atCap > 0, cutBurst(s, c):
		return capper(s, c)
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

// capper is what makes the cap of a container what it is. A bound is listed only where it is below what the load line
// leaves.
func capper(s *report.Status, c *report.Container) Cause {
	bound := func(cut report.Cut) bool { return cut.Object == c.Name && strings.HasPrefix(cut.Bound, "extraCores") }
	switch {
	case slices.ContainsFunc(s.Cuts, bound):
		return ExtraCores
	case cutBurst(s, c), cutByLoadLine(s) && c.Strategy.CFSQuotaBurstPercent > 100:
		return LoadLine
	}
	return AtCap
}

// cutBurst says whether the load line cuts the burst of a container that has nothing else above its limit.
func cutBurst(s *report.Status, c *report.Container) bool {
	return cutByLoadLine(s) && c.Strategy.Policy == strategy.CPUBurstOnly && c.Strategy.CPUBurstPercent > 0
}

func cutByLoadLine(s *report.Status) bool { return s.Node.Risk != nil && s.Node.Risk.Share < 1 }

// loss is what one snapshot has found lost.
type loss struct {
	at        time.Time
	cause     Cause
	lost      time.Duration
	throttled int64
}

// blame is the cause of the largest part of losses: of the time, and where none was measured of the throttled periods.
// Among equal parts it is the latest one's.
func blame(losses []loss) Cause {
	if len(losses) == 0 {
		return NoCause
	}
	sum := map[Cause]loss{}
	most := NoCause
	for _, one := range losses {
		all := sum[one.cause]
		all.lost += one.lost
		all.throttled += one.throttled
		sum[one.cause] = all
		if best := sum[most]; cmp.Or(cmp.Compare(all.lost, best.lost),
			cmp.Compare(all.throttled, best.throttled)) >= 0 {
			most = one.cause
		}
	}
	return most
}

// losingFor is how old the latest loss of a container is that loses time now: snapshots come each second, and a group
// may be read in every other one.
const losingFor = 2500 * time.Millisecond

// words say what the agent did not do, after "throttled by its own limit of 0.5 CPUs". still: and it lasts.
func (c Cause) words(still bool) string {
	w, known := map[Cause][2]string{
		Held:   {"the agent was held and wrote nothing", "the agent is held and writes nothing"},
		Paused: {"it was paused", "it is paused"},
		PolicyNone: {"its policy was none, so nothing was done about it",
			"its policy is none, so nothing is done about it"},
		Refused: {"a write to its files was refused", "a write to its files was refused"},
		AtCap:   {"it used all that its policy permits in a period", "it uses all that its policy permits in a period"},
		LoadLine: {"the node's load line cut what its policy permits",
			"the node's load line cuts what its policy permits"},
		ExtraCores: {"an administrator's bound on CPUs above limits was used up",
			"an administrator's bound on CPUs above limits is used up"},
		Budget:     {"its time above the limit was used up", "its time above the limit is used up"},
		Guard:      {"the node had nothing to spare", "the node has nothing to spare"},
		RefillsOff: {"refills had no effect here", "refills have no effect here"},
	}[c]
	switch {
	case !known:
		return ""
	case still:
		return "; " + w[1]
	}
	return "; " + w[0]
}

// waiting is who has waited behind neighbours, in thread time.
type waiting struct {
	name string
	time time.Duration
}

// worthTelling is how much thread time behind neighbours is worth a sentence.
const worthTelling = Window / 100

// sentence says who lost how much wall time in the window, why, and what the agent did about it. Who stood still by a
// limit is never said to have waited for a neighbour.
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
		return fmt.Sprintf("Nobody was throttled in %s; the threads of %s waited %s for CPUs that neighbours had.",
			span, report.Printable(behind.name), seconds(behind.time))
	case len(losers) == 0:
		return "Nobody stood still in " + span + "."
	}
	worst := losers[0]
	text := fmt.Sprintf("%s lost %s of %s: %s%s%s%s", report.Printable(worst.Name), seconds(*worst.Lost), span,
		limitWords(worst), until(v.Now, worst), worst.Cause.words(worst.Cause == worst.CauseNow), done(worst))
	if len(losers) > 1 {
		text += fmt.Sprintf("; %d more lost %s", len(losers)-1, seconds(rest))
	}
	return text + "."
}

// until is " until 12 s ago" where it loses nothing now.
func until(at time.Time, r Row) string {
	if r.CauseNow != NoCause || r.LastLost == nil {
		return ""
	}
	return fmt.Sprintf(" until %.0f s ago", at.Sub(*r.LastLost).Seconds())
}

// done is "; Plimsoll made 12 refills, and has raised the quota to 0.75 CPUs". A value that the agent did not request
// is another program's.
func done(r Row) string {
	var parts []string
	switch {
	case r.Refills == nil || *r.Refills <= 0:
	case *r.Refills == 1:
		parts = append(parts, "made 1 refill")
	default:
		parts = append(parts, fmt.Sprintf("made %d refills", *r.Refills))
	}
	if r.Limit != nil && r.Quota != nil && *r.Quota > *r.Limit && same(r.Quota, r.QuotaAsked) && r.Period > 0 {
		parts = append(parts, "has raised the quota to "+cpus(*r.Quota, r.Period))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; Plimsoll " + strings.Join(parts, ", and ")
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
