package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// Receipt is what refills and raises cause, by an experiment: the difference between spells in which they were withheld
// and the others.
type Receipt struct {
	Since    time.Time `json:"since"`           // when the experiment began
	Treated  int64     `json:"treated_spells"`  // spells with refills and raises
	Withheld int64     `json:"withheld_spells"` // spells without
	// spells in which the limit was changed, the container paused, or the agent ended
	Aborted int64 `json:"aborted_spells,omitempty"`
	// mean wall time throttled in a spell with refills and raises
	TreatedLost  float64 `json:"treated_lost_seconds"`
	WithheldLost float64 `json:"withheld_lost_seconds"` // mean wall time throttled in a spell without
	Saved        Caused  `json:"saved"`                 // the difference of these, for a spell
	SavedPerDay  Caused  `json:"saved_day"`             // the same for as many spells as there were in a day
	// CPU time that all others used less in the 100 ms after a treated spell began
	Neighbours Caused `json:"neighbours"`
	// with `run --requests`: as `saved`, for the throttled part of the response times of all requests that were
	// answered in a spell
	Requests       Caused `json:"requests"`
	RequestsPerDay Caused `json:"requests_day"`        // the same for as many spells as there were in a day
	Verdict        string `json:"verdict"`             // see Receipts
	Harm           bool   `json:"withdrawn,omitempty"` // nothing is refilled or raised any more
}

// Caused is a difference and its interval of 95 %, which holds at all times together.
type Caused struct {
	Mean float64 `json:"mean_seconds"` // the estimate
	// the lower end of the interval of 95 %, which is valid at any time that you look
	Low   float64 `json:"low_seconds"`
	High  float64 `json:"high_seconds"`   // its upper end
	Known bool    `json:"interval_known"` // false: too few spells, and both ends are 0
}

// Receipts is the receipt of a node: of all containers, those that are gone included.
type Receipts struct {
	// with the names and `since` of the containers it says which spells are withheld since the agent began
	Seed uint64 `json:"seed,string"`
	// how many containers are not refilled any more, in place of the boolean of one
	Withdrawn int `json:"withdrawn"`
	Receipt       // of all containers, those that are gone included
}

func (c Caused) line() string {
	if !c.Known {
		return signed(c.Mean) + " (no interval yet)"
	}
	return fmt.Sprintf("%s (%s to %s)", signed(c.Mean), signed(c.Low), signed(c.High))
}

// known is a bound of the interval.
func (c Caused) known(bound float64) float64 {
	if !c.Known {
		return math.NaN()
	}
	return bound
}

// signed is a time that may be negative.
func signed(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < 0 {
		return "-" + span(-d)
	}
	return span(d)
}

// line is "20 of 1980 spells withheld; they were throttled for ... longer".
func (r Receipt) line() string {
	line := fmt.Sprintf("%d of %d spells withheld: %s", r.Withheld, r.Withheld+r.Treated, r.Verdict)
	if r.Saved.Known {
		line += "; saved a spell " + r.Saved.line() + ", a day " + r.SavedPerDay.line()
	}
	return line
}

func receiptMetrics() []metric[Receipts] {
	g := func(name, help string, value func(Receipts) float64) metric[Receipts] {
		return gauge("receipt_"+name, help, nil, value)
	}
	return []metric[Receipts]{
		counter("receipt_treated_spells_total",
			"Busy spells of the experiment in which containers were refilled and raised.", nil,
			func(r Receipts) float64 { return float64(r.Treated) }),
		counter("receipt_withheld_spells_total",
			"Busy spells of the experiment in which refills and raises were withheld.", nil,
			func(r Receipts) float64 { return float64(r.Withheld) }),
		g("saved_seconds", "Wall time throttled in a withheld spell less that in a treated spell, estimate.",
			func(r Receipts) float64 { return r.Saved.Mean }),
		g("saved_low_seconds", "Lower end of the 95 % interval of receipt_saved_seconds; NaN while there is none.",
			func(r Receipts) float64 { return r.Saved.known(r.Saved.Low) }),
		g("saved_high_seconds", "Upper end of the 95 % interval of receipt_saved_seconds; NaN while there is none.",
			func(r Receipts) float64 { return r.Saved.known(r.Saved.High) }),
		g("neighbours_lost_seconds",
			"CPU time that others used less in the 100 ms after a treated spell began than after a withheld "+
				"one, estimate.", func(r Receipts) float64 { return r.Neighbours.Mean }),
		g("requests_saved_seconds",
			"Throttled time of the requests answered in a withheld spell less that in a treated spell, estimate; "+
				"NaN while there is no interval.", func(r Receipts) float64 {
				return r.Requests.known(r.Requests.Mean)
			}),
		g("withdrawn_containers", "Containers that are not refilled any more, because their receipts show harm.",
			func(r Receipts) float64 { return float64(r.Withdrawn) }),
	}
}

// ReceiptsSchema names the format of `plimsoll receipts --json`. Fields are added, never renamed, within a version.
const ReceiptsSchema = "plimsoll.receipts/v1"

// ReceiptList is the receipts of a node and of its containers.
type ReceiptList struct {
	Schema string `json:"schema"`
	// of all containers, those that are gone included; `null`: receipts are off
	Node       *Receipts          `json:"node"`
	Containers []ContainerReceipt `json:"containers"` // those with a receipt, by path
}

// ContainerReceipt is that of one container.
type ContainerReceipt struct {
	Cgroup string  `json:"cgroup"`   // the path of its control group
	Name   string  `json:"name"`     // as in the status
	Part   float64 `json:"receipts"` // the part of its spells that is withheld
	Receipt
}

// ReceiptsOf are the receipts of a snapshot.
func ReceiptsOf(s Status) ReceiptList {
	l := ReceiptList{Schema: ReceiptsSchema, Node: s.Receipts, Containers: []ContainerReceipt{}}
	for _, c := range byPath(s.Containers) {
		if c.Receipt != nil {
			l.Containers = append(l.Containers, ContainerReceipt{c.Cgroup, c.Name, c.Strategy.Receipts, *c.Receipt})
		}
	}
	return l
}

// Text writes the receipts for people.
func (l ReceiptList) Text(w io.Writer) error {
	var p page
	if l.Node == nil && len(l.Containers) == 0 {
		p.printf("receipts are off: nothing is withheld, so what refills save cannot be measured; `receipts: 1%%` " +
			"under strategy turns them on\n")
		return p.writeTo(w)
	}
	rows := [][]string{{"NAME", "SPELLS", "WITHHELD", "THROTTLED", "IF WITHHELD", "SAVED A SPELL"}}
	add := func(name string, r Receipt) {
		n := r.Treated + r.Withheld
		rows = append(rows, []string{name, strconv.FormatInt(n, 10), strconv.FormatInt(r.Withheld, 10),
			signed(r.TreatedLost),
			signed(r.WithheldLost), r.Saved.line()})
	}
	for _, c := range l.Containers {
		add(c.Name, c.Receipt)
	}
	if l.Node != nil {
		add("all together", l.Node.Receipt)
	}
	p.table(rows)
	p.printf("\nTHROTTLED, IF WITHHELD: mean wall time throttled in a spell. SAVED: their difference, weighted, with " +
		"an interval of 95 %% that holds at whatever time one looks.\n\n")
	for _, c := range l.Containers {
		l.detail(&p, c.Name, c.Receipt)
	}
	if l.Node != nil && len(l.Containers) != 1 {
		l.detail(&p, "all together", l.Node.Receipt)
	}
	return p.writeTo(w)
}

func (ReceiptList) detail(p *page, name string, r Receipt) {
	p.printf("%s, since %s: %s.\n  Saved a day %s; neighbours lost in the 100 ms after a spell began %s of CPU time.\n",
		Printable(name), clock(r.Since), r.Verdict, r.SavedPerDay.line(), r.Neighbours.line())
	if r.Requests.Known {
		p.printf("  Its requests are throttled less: in a spell, all together, %s; a day %s.\n", r.Requests.line(),
			r.RequestsPerDay.line())
	}
	if r.Harm {
		p.printf("  It is not refilled any more, for refilling it %s; hint: %s\n", r.Verdict, ReceiptHint)
	}
}

// ReceiptHint says how to undo a withdrawal.
const ReceiptHint = "to refill it all the same, set `receipts: 0%` for it (overrides, or the annotation " +
	"plimsoll/receipts: \"false\" of its pod)"
