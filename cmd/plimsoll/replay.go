package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cpu"
	"plimsoll/internal/figure"
	"plimsoll/internal/flight"
	"plimsoll/internal/flight/disk"
	"plimsoll/internal/progress"
	"plimsoll/internal/replay"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
	"plimsoll/internal/sysfs"
)

// replayFlags are what a person may choose about a replay.
type replayFlags struct {
	at, dir, policy, figure string
	length                  time.Duration
	limit                   float64
	burst, quotaBurst       ratio
	threshold               int64
	cpus                    int
	seed                    uint64
	json                    bool
}

const (
	// leadIn is how much of the record before a replay shows the agent the way there.
	leadIn = 30 * time.Second
	// leadOut is how much of the record after it says when that was done which was throttled at its end.
	leadOut = 30 * time.Second
)

// longestReplay bounds what is simulated.
const longestReplay = 6 * time.Hour

// mostPieces bounds the memory of a replay: 330 bytes for each of replay.Pieces.
const mostPieces = 1 << 23

func replayCommand(g *globals) *cobra.Command {
	usual := strategy.Default()
	f := &replayFlags{burst: ratio(usual.CPUBurstPercent) / 100, quotaBurst: ratio(usual.CFSQuotaBurstPercent) / 100}
	cmd := &cobra.Command{
		Use:   "replay [CONTAINER]",
		Short: "Say what another limit or policy would have done at a recorded time",
		Long: `Run a time of the record again, with another limit or policy, and print what was and what would have been side by side: time
lost to throttling, how late the work was done, CPU time above the limit, and what the other containers paid. The decisions
are those of the shipped agent, on a simulated kernel. Nothing on this node is changed.

CONTAINER is a name as in ` + "`plimsoll history`" + `; without one all containers with a limit are replayed. --at is a time as in
` + "`plimsoll history`" + `. A limit that throttled hides how much work there was and when it came: each figure has its bounds.`,
		Example: `  plimsoll replay --at 03:12 default/web/nginx --limit 0.8 --policy none
  plimsoll replay --at 03:12 --for 10m --policy auto --burst 200% --threshold 60 --figure incident.svg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.setup(cmd, time.Now())
			if err != nil {
				return err
			}
			who := strings.Join(args, "")
			r, result, err := f.replay(cmd, g.recordDir(cmd.Flags(), f.dir), who, o)
			if err != nil {
				return err
			}
			err = show(cmd.OutOrStdout(), r, f.json)
			if f.figure != "" {
				err = errors.Join(err, draw(f.figure, replayFigure(r, result, o)))
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.at, "at", "",
		"the begin (required): 03:12, \"2026-11-25 03:12\", RFC 3339, or how long ago (90m)")
	flags.DurationVar(&f.length, "for", 10*time.Minute, "how long from there")
	flags.Float64Var(&f.limit, "limit", 0, "limit of CONTAINER in CPUs (default: as it was)")
	flags.StringVar(&f.policy, "policy", string(strategy.Auto), "none, cpuBurstOnly, cfsQuotaBurstOnly or auto")
	flags.Var(&f.burst, "burst", "burst in limits (cpuBurstPercent)")
	flags.Var(&f.quotaBurst, "quota-burst", "the cap in limits (cfsQuotaBurstPercent)")
	flags.Int64Var(&f.threshold, "threshold", usual.SharePoolThresholdPercent,
		"use of the node, in percent, above which nothing is granted (sharePoolThresholdPercent)")
	flags.IntVar(&f.cpus, "cpus", 0, "CPUs of the node (default: of this machine)")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the delays in the simulation")
	flags.StringVar(&f.figure, "figure", "", "draw both into this file, .svg or .png")
	recordDirFlag(flags, &f.dir, "")
	jsonFlag(cmd, &f.json)
	return cmd
}

// setup is what was asked for.
func (f *replayFlags) setup(cmd *cobra.Command, now time.Time) (o replay.Setup, err error) {
	if f.at == "" {
		return o, withHint(misusef("--at is missing"),
			"plimsoll replay --at 03:12; `plimsoll history` shows when time was lost")
	}
	if o.From, err = moment(f.at, now); err != nil {
		return o, misusef("--at: %w", err)
	}
	if f.length < time.Second || f.length > longestReplay {
		return o, misusef("--for %s: 1s to %s are taken", f.length, longestReplay)
	}
	if o.To = o.From.Add(f.length); o.To.After(now) {
		if o.To = now; !o.From.Before(now) {
			return o, misusef("--at %s is still to come", o.From.Format(time.RFC3339))
		}
	}
	if o.Strategy, err = f.strategy(); err != nil {
		return o, err
	}
	if f.limit != 0 && !(f.limit >= 0.01 && f.limit <= 4096) {
		return o, misusef("--limit %g: 0.01 to 4096 CPUs are taken", f.limit)
	}
	o.Limit = time.Duration(f.limit * float64(cpu.DefaultPeriod))
	if o.CPUs = f.cpus; f.cpus == 0 {
		online, err := sysfs.NewHost("/").Online()
		if err != nil {
			return o, withHint(err, "say how many CPUs the node has: --cpus")
		}
		o.CPUs = len(online)
	}
	if o.CPUs < 1 || o.CPUs > 4096 {
		return o, misusef("--cpus %d: 1 to 4096 are taken", o.CPUs)
	}
	if f.figure != "" {
		if err := figure.Known(f.figure); err != nil {
			return o, misusef("--figure %s: %w", f.figure, err)
		}
	}
	o.Seed = f.seed
	o.Step = max(time.Second, (o.To.Sub(o.From) / 200).Round(time.Second))
	return o, nil
}

// strategy is what is simulated.
func (f *replayFlags) strategy() (strategy.Strategy, error) {
	s := strategy.Default()
	s.StartupSeconds = 0 // these containers were there before
	switch {             // infinity has no percentage
	case f.burst > 100:
		return s, misusef("--burst %g: 0 to 100 limits are taken", f.burst)
	case f.quotaBurst < 1 || f.quotaBurst > 100:
		return s, misusef("--quota-burst %g: 1 to 100 limits are taken", f.quotaBurst)
	}
	percent := func(r ratio) *int64 { v := int64(math.Round(100 * float64(r))); return &v }
	policy := strategy.Policy(f.policy)
	patch := strategy.Patch{Policy: &policy, CPUBurstPercent: percent(f.burst),
		CFSQuotaBurstPercent: percent(f.quotaBurst), SharePoolThresholdPercent: &f.threshold}
	if err := patch.Check(); err != nil {
		return s, misusef("%w", err)
	}
	return patch.Over(s), nil
}

// replay reads the record and runs it.
func (f *replayFlags) replay(cmd *cobra.Command, dir, who string, o replay.Setup) (report.Replay, replay.Result,
	error) {
	fail := func(err error) (report.Replay, replay.Result, error) { return report.Replay{}, replay.Result{}, err }
	if o.Limit > 0 && who == "" {
		return fail(withHint(misusef("--limit needs a CONTAINER"), "one limit for all containers is hardly meant"))
	}
	from := o.From.Add(-leadIn)
	r, err := recordedRange(dir, from, o.To)
	if err != nil {
		return fail(err)
	}
	length := o.To.Add(leadOut).Sub(from)
	pieces := replay.Pieces(r.Rows, length)
	if err := fits(pieces, length); err != nil {
		return fail(err)
	}
	chosen, others, warnings, err := choosePeriods(r, from, o, who)
	if err == nil {
		err = fits(pieces+replay.Undone(chosen, o.CPUs), length)
	}
	if err != nil {
		return fail(err)
	}
	bar, done := progress.Start(bars(cmd), "replaying", replay.Runs), int64(0)
	result, err := replay.Compare(chosen, others, o, func() { done++; bar.Set(done) })
	bar.Stop()
	if err != nil {
		return fail(err)
	}
	for _, skipped := range r.Skipped {
		warnings = append(warnings, "a file is left out: "+skipped.Error())
	}
	rep := replayReport(result, r, o, dir, warnings)
	rep.Gaps = gaps(r.Covered, o.From, o.To)
	return rep, result, nil
}

// fits fails where a replay of so many pieces would take more memory than is taken, before it takes any.
func fits(n int64, length time.Duration) error {
	if n <= mostPieces {
		return nil
	}
	most := time.Duration(float64(length)*mostPieces/float64(n)) - leadIn - leadOut
	return withHint(fmt.Errorf("the periods of all containers, and the pieces of their work, are more than the %d "+
		"million that are taken", mostPieces/1_000_000),
		fmt.Sprintf("a shorter --for: %s at most", max(time.Second, most.Truncate(time.Second))))
}

// recordedRange reads what the record has of a time, and of a while after it.
func recordedRange(dir string, from, to time.Time) (disk.Range, error) {
	r, err := disk.Select(dir, from, to.Add(leadOut), func(*flight.Minute) bool { return true })
	r.Rows = withoutLater(r.Rows, to)
	switch {
	case err != nil:
		return r, noRecord(err)
	case len(r.Rows) > 0:
		return r, nil
	case len(r.Skipped) > 0: // a version, or damage: of each only the first is told
		return r, withHint(fmt.Errorf("the record of this time cannot be read: %w", r.Skipped[0]),
			"see docs/RECORD.md; the plimsoll that wrote it reads it")
	}
	if len(r.Covered) > 0 && r.Covered[0].From < to.UnixMilli() {
		return r, errors.New("no container used CPU time under a limit in this time")
	}
	list, _, err := disk.List(dir)
	if err != nil || len(list) == 0 {
		return r, withHint(errors.New("the record is empty"), "`plimsoll run` writes it: see `plimsoll status`")
	}
	oldest := slices.MinFunc(list, func(a, b disk.File) int { return a.From.Compare(b.From) }).From
	newest := slices.MaxFunc(list, func(a, b disk.File) int { return a.To.Compare(b.To) }).To
	return r,
		withHint(fmt.Errorf("nothing was recorded from %s to %s", from.Format(time.RFC3339), to.Format(time.RFC3339)),
			fmt.Sprintf("the record is of %s to %s", oldest.In(from.Location()).Format(time.RFC3339),
				newest.In(from.Location()).Format(time.RFC3339)))
}

// withoutLater leaves out, of the rows from an instant on, those of containers that were not there before, or under
// another name, or with another period.
func withoutLater(rows []flight.Minute, from time.Time) []flight.Minute {
	as := func(m *flight.Minute) string { return fmt.Sprint(m.PeriodUs, " ", m.Name()) }
	before, later := map[string]string{}, from.UnixMilli()
	for i := range rows {
		if m := &rows[i]; m.Start < later {
			before[m.Cgroup] = as(m)
		}
	}
	return slices.DeleteFunc(rows, func(m flight.Minute) bool {
		return m.Start >= later && before[m.Cgroup] != as(&m)
	})
}

// choosePeriods makes series of the record: those that are meant, and their neighbours.
func choosePeriods(r disk.Range, from time.Time, o replay.Setup, who string) (chosen, others []*replay.Series,
	warnings []string, err error) {
	named := meant(r.Rows, who)
	var asked map[string]bool
	if who != "" {
		asked = named
	}
	list, warnings, err := replay.FromRecord(r.Rows, r.Covered, float64(o.CPUs), from, o.To.Add(leadOut), asked)
	if err != nil {
		return nil, nil, nil, withHint(err, "replay a time before or after it")
	}
	for _, s := range list {
		if named[s.Cgroup] && s.LimitAt(o.To) > 0 {
			chosen = append(chosen, s)
		} else {
			others = append(others, s)
		}
	}
	switch {
	case len(chosen) > 0:
		return chosen, others, warnings, nil
	case who != "" && len(named) == 0:
		err = withHint(fmt.Errorf("the record of this time has no container %q", who),
			"`plimsoll history` lists those that it has")
	default:
		err = replay.ErrNothing
	}
	return nil, nil, nil, err
}

// replayReport is a result for people and programs.
func replayReport(result replay.Result, r disk.Range, o replay.Setup, dir string, warnings []string) report.Replay {
	out := report.Replay{Schema: report.ReplaySchema, From: o.From, To: o.To, Dir: filepath.Clean(dir), Files: r.Files,
		CPUs: o.CPUs, Policy: string(o.Strategy.Policy),
		Burst: o.Strategy.CPUBurstPercent, QuotaBurst: o.Strategy.CFSQuotaBurstPercent,
		Threshold: o.Strategy.SharePoolThresholdPercent, Containers: []report.Replayed{},
		Lost: r.Lost, Warnings: append([]string{}, warnings...), Conditions: replayConditions(result)}
	for _, c := range result.Containers {
		s := c.Series
		was := float64(s.LimitAt(o.To)) / float64(s.Period)
		would := was
		if o.Limit > 0 {
			would = float64(o.Limit) / float64(cpu.DefaultPeriod)
		}
		x := report.Replayed{Cgroup: s.Cgroup, Name: s.Name, Limits: [2]float64{was, would}, Was: replayFigures(c.Was),
			Would: replayFigures(c.Would)}
		if c.Model != nil {
			x.Model = &report.ReplayModel{Lost: c.Model.Lost.Value, Used: c.Model.Used.Value}
		}
		out.Containers = append(out.Containers, x)
	}
	if n := result.Neighbours; n.Count > 0 {
		out.Neighbours = &report.ReplayNeighbours{Count: n.Count, WasMean: n.WasMean, WasP99: n.WasP99,
			Mean: between(n.NewMean), P99: between(n.NewP99),
			Worst: n.Worst, WorstBy: n.WorstBy}
	}
	return out
}

// replayConditions are those under which the figures hold.
func replayConditions(result replay.Result) []string {
	list := []string{"containers without a limit and the system's own work are not in the record: the node is less " +
		"busy here than it was"}
	if slices.ContainsFunc(result.Containers, func(c replay.Container) bool { return c.Open }) {
		list = append(list,
			"a container was still throttled as the record ended, or a gap began: its demand has no upper bound but "+
				"its threads")
	}
	return list
}

func replayFigures(f replay.Figures) report.ReplayFigures {
	return report.ReplayFigures{Lost: between(f.Lost), Delay: between(f.Delay), Above: between(f.Above),
		Used: between(f.Used), Refills: int64(f.Refills.Value)}
}

func between(r replay.Range) report.Between {
	return report.Between{Likely: r.Value, Low: r.Low, High: r.High}
}
