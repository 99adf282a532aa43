//go:build browser

package browser

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"plimsoll/internal/report"
	"plimsoll/internal/view"
)

// node makes up a node: the same seed, the same containers. Each view has other figures than the one before.
type node struct {
	name   string
	rows   []view.Row
	gone   []string
	chance *rand.Rand
	turn   func(*node) // before each view; nil: nothing
	mark   view.Mark
	mode   report.Mode // "": active

	colocation *report.Colocation
	reserve    *report.Reserve
	waits      *report.Waits
	problems   []string
	unmeasured string // of details
	waited     *view.Waited
}

// sentence is one that package view could say.
const sentence = "shop/gateway-0003/gateway lost 1.2 s of the last minute: throttled by its own limit of 2 CPUs; " +
	"Plimsoll made 7 refills, and has raised the quota to 2.5 CPUs."

func newNode(containers int) *node {
	n := &node{name: "node-7", chance: rand.New(rand.NewPCG(1, 2)), problems: []string{}}
	n.mark = view.Mark{
		Node: report.Node{State: "idle", CPUs: 8, Capacity: 8, Used: 3.1, Threshold: 5.2, Granted: 0.8,
			Risk: &report.Risk{Target: 0.999, Now: 0.00042, Interval: &[2]float64{0.00017, 0.0011}, Asked: 0.0031,
				Share: 0.8, Met: true, Containers: containers, Capacity: 7.4}},
		Features: []view.Feature{
			{Name: "burst", Text: "the kernel lets a group use quota that it has saved (cpu.cfs_burst_us)", OK: true},
			{Name: "refills", Text: "a quota that is written again ends a throttle at once", OK: true},
			{Name: "throttle events", Text: "eBPF programs report each throttle as it begins and ends", OK: true},
			{Name: "core scheduling", Text: "keeps offline work off the other thread of a core", OK: false},
		},
		Changed: 14, Undo: "plimsoll restore",
	}
	services := []string{"checkout", "search", "ingest", "gateway", "thumbnails", "ledger", "mailer", "recommend"}
	for i := range containers {
		name := services[i%len(services)]
		r := view.Row{ID: fmt.Sprintf("/kubepods/burstable/pod%04d/%s", i, name), Name: name,
			Pod: fmt.Sprintf("shop/%s-%04d", name, i), Runtime: "containerd", Level: "container", Policy: "auto",
			Period: 100 * time.Millisecond, Burst: 200 * time.Millisecond, BurstAsked: 200 * time.Millisecond}
		limit := time.Duration(1+i%8) * 50 * time.Millisecond
		r.Limit, r.Quota, r.QuotaAsked = &limit, &limit, &limit
		n.rows = append(n.rows, r)
	}
	n.turn = (*node).drift
	return n
}

// drift gives each container other figures: few of them stand still, and by different causes.
func (n *node) drift() {
	for i := range n.rows {
		r := &n.rows[i]
		limit := r.Limit.Seconds() / r.Period.Seconds()
		used := limit * (0.1 + 0.5*n.chance.Float64())
		peak := used * (1 + 2*n.chance.Float64())
		tokens := time.Duration(n.chance.Float64() * float64(r.Burst))
		var throttled, refills int64
		var lost time.Duration
		r.Cause, r.CauseNow, r.Why = "", "", "burst 200 ms: the limit alone throttles 1.8 % of the periods"
		if i%17 == 3 {
			throttled, refills = n.chance.Int64N(40), n.chance.Int64N(60)
			lost = time.Duration(throttled) * time.Duration(3+n.chance.IntN(40)) * time.Millisecond
			r.Cause = []view.Cause{view.OwnLimit, view.AtCap, view.Guard, view.Budget}[i/17%4]
			if i/17%2 == 0 {
				r.CauseNow = r.Cause
			}
			r.Why = "quota raised from 0.50 to 0.75 CPUs: throttled in 9 of 30 periods, and the demand of the last " +
				"3 s is 0.71 CPUs"
		}
		r.Used, r.Peak, r.Lost, r.Throttled, r.Refills, r.Tokens = &used, &peak, &lost, &throttled, &refills, &tokens
	}
}

func (n *node) view(now time.Time) view.View {
	if n.turn != nil {
		n.turn(n)
	}
	n.mark.Used = 3.1 + 0.4*math.Sin(float64(now.Unix())/5)
	rows := slices.Clone(n.rows)
	return view.View{Schema: view.Schema, Now: now, Node: n.name, Version: "v0", Kernel: "6.1.158", Cgroup: "v1",
		Mode: cmp.Or(n.mode, report.Active), Window: time.Minute, Mark: n.mark, Rows: rows,
		Sentence:   sentence,
		Recording:  &view.Recording{Since: now.Add(-time.Hour)},
		Colocation: n.colocation, Reserve: n.reserve, Waits: n.waits, Problems: n.problems,
		Flags: "--state-dir /run/lab"}
}

// periods are those of the time before now: a service that is busy for moments, with the kernel's arithmetic of tokens.
func (n *node) periods(id string, now time.Time, back time.Duration) view.Periods {
	p := view.Periods{Length: 100 * time.Millisecond}
	scale, burst := int32(1), int32(200_000)
	if r := n.find(id); r != nil {
		scale = int32(*r.Limit / (50 * time.Millisecond))
	}
	tokens := burst / 2
	for end := now.Add(-back).Truncate(p.Length).Add(p.Length); !end.After(now); end = end.Add(p.Length) {
		at := end.UnixMilli() / 100
		if at%173 < 9 {
			continue // it sleeps
		}
		dice := rand.New(rand.NewPCG(uint64(at), 7))
		want := scale * int32(dice.ExpFloat64()*16_000)
		if at%90 < 6 {
			want += scale * 70_000
		}
		limit := scale * 50_000
		if at%600 > 380 {
			limit = scale * 75_000
		}
		used := min(want, limit+tokens)
		var lost, throttles, refills int32
		if want > used {
			throttles, lost = 1, min(90_000, (want-used)/2)
			if at%4 == 0 {
				refills, lost = 1, 400
			}
		}
		tokens = min(burst, tokens+limit-used)
		p.End = append(p.End, end.UnixMilli())
		p.Used, p.Quota, p.Tokens = append(p.Used, used), append(p.Quota, limit), append(p.Tokens, tokens)
		p.Throttles, p.Lost, p.Refills = append(p.Throttles, throttles), append(p.Lost, lost), append(p.Refills,
			refills)
	}
	return p
}

// find is the row of a group; nil: there is none.
func (n *node) find(id string) *view.Row {
	for i := range n.rows {
		if n.rows[i].ID == id {
			return &n.rows[i]
		}
	}
	return nil
}

func (n *node) detail(id string, now time.Time) view.Detail {
	d := view.Detail{Unmeasured: n.unmeasured}
	r := n.find(id)
	if r == nil || n.unmeasured != "" {
		return d
	}
	d.Row = *r
	d.Periods = n.periods(id, now, 15*time.Minute)
	d.Histogram = make([]int64, 65)
	for _, used := range d.Periods.Used {
		d.Histogram[min(64, (int64(used)*16000+r.Limit.Nanoseconds()-1)/r.Limit.Nanoseconds())]++
	}
	d.Demand = &view.Demand{Periods: len(d.Periods.End), Low: 0.36, High: 0.41, Censored: true}
	d.Waited = &view.Waited{Wanted: 210 * time.Second, Received: 180 * time.Second, Causes: []view.WaitedFor{
		{Cause: report.CauseOwnLimit, Text: "throttled by its own limit", Time: 21 * time.Second},
		{Cause: report.CauseNeighbour, Text: "waiting behind neighbours", Time: 6 * time.Second},
		{Cause: report.CauseIdle, Text: "an idle CPU woke up", Time: 900 * time.Millisecond},
	}, Neighbours: []report.Neighbour{{Name: "ingest", Cgroup: "/kubepods/besteffort/pod9/ingest",
		Time: 5 * time.Second}, {Name: "thumbnails", Time: time.Second}}}
	if n.waited != nil {
		d.Waited = n.waited
	}
	limit := *r.Limit
	d.Advice = []view.Alternative{
		{Text: "the limit alone", Limit: limit, Throttled: [2]int{812, 812}, Delay: [2]float64{0.41, 0.41}},
		{Text: "burst 100 %", Limit: limit, Burst: 50 * time.Millisecond, Throttled: [2]int{301, 344},
			Delay: [2]float64{0.11, 0.14}},
		{Text: "burst 400 %", Limit: limit, Burst: 200 * time.Millisecond, Now: true, Throttled: [2]int{24, 31},
			Delay: [2]float64{0.01, 0.02}},
		{Text: "limit × 1.5", Limit: limit * 3 / 2, Throttled: [2]int{96, 120}, Delay: [2]float64{0.05, 0.06}},
	}
	return d
}
