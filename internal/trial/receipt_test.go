package trial

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/receipt"
	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// sampled is a service of which this part of the spells is withheld.
func sampled(path string, part float64, load sim.Load) Group {
	s := with(strategy.CFSQuotaBurstOnly)
	s.Receipts = part
	return Group{Path: path, Quota: 50 * ms, Period: 100 * ms, Strategy: s, Load: load}
}

func bursts() sim.Load { return sim.Poisson(1.5, sim.Exponential(80*ms), 4) }

// receiptWorld runs a world with counts of the throttles.
func receiptWorld(t *testing.T, seed uint64, threshold int64, d time.Duration, groups ...Group) *World {
	t.Helper()
	w := mustNew(t, Scenario{Kernel: mainline(4, seed), Threshold: threshold, Events: true, Counts: true,
		Ahead: seed%2 == 1, Groups: groups})
	w.Run(d, nil)
	return w
}

func receiptOf(t *testing.T, w *World, path string) report.Receipt {
	t.Helper()
	for _, c := range w.Agent.Status().Containers {
		if c.Cgroup == path && c.Receipt != nil {
			return *c.Receipt
		}
	}
	t.Fatalf("%s has no receipt", path)
	return report.Receipt{}
}

// TestReceiptCoversTheEffect: what the experiment finds is what two runs of the same load differ by, one in which all
// is refilled and one in which nothing is. Requests keep a container busy for longer than a spell lasts.
func TestReceiptCoversTheEffect(t *testing.T) {
	const hour = time.Hour // of 1,500 spells
	requests := sim.Poisson(6.5, sim.Fixed(35*ms), 4)
	loads := []sim.Load{bursts(), bursts(), bursts(), requests, requests}
	for i, load := range loads {
		seed := uint64(i)
		w := receiptWorld(t, seed, 80, hour, sampled("/lab/web", 0.2, load))
		r := receiptOf(t, w, "/lab/web")
		none := receiptWorld(t, seed, 80, hour, Group{Path: "/lab/web", Quota: 50 * ms, Period: 100 * ms,
			Strategy: with(strategy.None), Load: load})
		all := receiptWorld(t, seed, 80, hour, sampled("/lab/web", 0, load))
		truth := 24 * (none.Kernel.ThrottledWall("/lab/web") - all.Kernel.ThrottledWall("/lab/web")).Seconds()
		t.Logf("seed %d: %d of %d spells withheld; treated %.4f s, withheld %.4f s; a day %+v, in truth %.1f s; %s",
			seed, r.Withheld, r.Treated+r.Withheld, r.TreatedLost, r.WithheldLost, r.SavedPerDay, truth, r.Verdict)
		if !r.SavedPerDay.Known || r.Verdict != string(receipt.Saves) {
			t.Fatalf("seed %d: %+v", seed, r)
		}
		if truth < r.SavedPerDay.Low || truth > r.SavedPerDay.High {
			t.Errorf("seed %d: the interval does not cover the effect", seed)
		}
		if x := r.RequestsPerDay; !x.Known || requestsWaiting*truth < x.Low || requestsWaiting*truth > x.High {
			t.Errorf("seed %d: of the requests %+v a day, in truth %.1f s", seed, x, requestsWaiting*truth)
		}
	}
}

// jobs are so far apart that each is a spell, and are throttled twice or more when nothing is handed out.
const every = 3 * time.Second

func jobs() sim.Load { return sim.Periodic(every, sim.Fixed(220*ms), 1) }

// TestWithheldSpells: in the spells that the hash withholds nothing is written, and in all others the throttles are
// ended. The same seed withholds the same ones.
func TestWithheldSpells(t *testing.T) {
	for _, policy := range []strategy.Policy{strategy.CFSQuotaBurstOnly, strategy.Auto} {
		g := sampled("/lab/web", 0.3, jobs())
		g.Strategy.Policy, g.Strategy.CPUBurstPercent = policy, 10
		w := mustNew(t, Scenario{Kernel: mainline(4, 3), Threshold: 80, Events: true, Counts: true, Groups: []Group{g}})
		var lost, writes []int
		for range 200 {
			before, at := w.Kernel.ThrottledWall(g.Path), len(w.Kernel.Writes())
			w.Run(every, nil)
			lost = append(lost, int((w.Kernel.ThrottledWall(g.Path)-before)/time.Millisecond))
			writes = append(writes, len(w.Kernel.Writes())-at)
		}
		r := receiptOf(t, w, g.Path)
		first := len(lost) - int(r.Treated+r.Withheld) // the jobs before the agent knew the node are in no spell
		if first < 0 || first > 2 || r.Withheld < 40 {
			t.Fatalf("%s: %+v", policy, r)
		}
		name := fmt.Sprintf("%s %d", g.Path, w.id(g.Path).Inode)
		for n := range lost[first:] {
			i := first + n
			if i == 0 {
				continue // it began in the middle of the job, when the agent knew the node
			}
			withheld := receipt.Withhold(3, name, r.Since, uint64(n), 0.3)
			if withheld && (writes[i] != 0 || lost[i] < 90) || !withheld && (writes[i] == 0 || lost[i] > 20) {
				t.Errorf("%s: spell %d, withheld: %v: %d writes, throttled for %d ms", policy, n, withheld, writes[i],
					lost[i])
			}
		}
	}
}

// TestNothingWithheld: where nothing is to be withheld, no spell begins: at 0 %, in a start, and above the threshold.
func TestNothingWithheld(t *testing.T) {
	off := sampled("/lab/web", 0, jobs())
	w := receiptWorld(t, 2, 80, 10*time.Minute, off)
	if s := w.Agent.Status(); s.Receipts != nil || s.Containers[0].Receipt != nil ||
		s.Containers[0].Totals.Refills < 150 {
		t.Errorf("at 0 %%: %+v, %+v", s.Receipts, s.Containers[0])
	}
	full := Group{Path: "/lab/full", Quota: 390 * ms, Period: 100 * ms, Strategy: with(strategy.None),
		Load: sim.Spin(3)}
	for _, threshold := range []int64{50, 100} {
		w = receiptWorld(t, 2, threshold, 10*time.Minute, sampled("/lab/web", 0.3, jobs()), full)
		r := receiptOf(t, w, "/lab/web")
		if n := r.Treated + r.Withheld; threshold == 50 && n != 0 || threshold == 100 && n < 150 {
			t.Errorf("threshold %d %%: %d spells", threshold, n)
		}
	}
}

// TestStartsAreNotWithheld: a container that is in its start is refilled each time, and has no spell; when its start is
// over, it has.
func TestStartsAreNotWithheld(t *testing.T) {
	w := mustNew(t, Scenario{Kernel: mainline(4, 2), Threshold: 80, Events: true, Counts: true,
		Groups: []Group{sampled("/lab/old", 0.5, sim.Load{})}})
	w.Run(2*time.Second, nil)
	young := sampled("/lab/young", 0.5, sim.Periodic(time.Second, sim.Fixed(120*ms), 1))
	young.Strategy.StartupSeconds = 30
	w.Add(t, young)
	w.Run(29*time.Second, nil)
	lost := w.Kernel.ThrottledWall(young.Path)
	if r := receiptOf(t, w, young.Path); r.Treated+r.Withheld != 0 || lost > 200*ms {
		t.Errorf("in its start: %+v, throttled for %v", r, lost)
	}
	w.Run(5*time.Minute, nil)
	if r := receiptOf(t, w, young.Path); r.Withheld < 50 || r.Treated < 50 {
		t.Errorf("after its start: %+v", r)
	}
}

// TestHarmWithdraws: where refills cost the container time, they end, and the status says why and how to undo it. With
// another configuration they begin again.
func TestHarmWithdraws(t *testing.T) {
	g := sampled("/lab/web", 0.3, jobs())
	w := mustNew(t, Scenario{Kernel: mainline(4, 2), Threshold: 80, Events: true, Counts: true, Harm: 700 * ms,
		Groups: []Group{g}})
	w.Run(30*time.Minute, nil)
	s := w.Agent.Status()
	r := receiptOf(t, w, g.Path)
	if r.Verdict != string(receipt.HarmsSelf) || !r.Harm || s.Receipts.Withdrawn != 1 {
		t.Fatalf("%+v, %+v", r, s.Receipts)
	}
	problems := strings.Join(s.Problems, "\n")
	if !strings.Contains(problems, "/lab/web: refills are withdrawn") || !strings.Contains(problems, "receipts: 0%") {
		t.Errorf("problems %q", problems)
	}
	before := len(w.Kernel.Writes())
	w.Run(5*time.Minute, nil)
	if n := len(w.Kernel.Writes()) - before; n != 0 ||
		!strings.Contains(w.Agent.Status().Containers[0].Why, "withdrawn") {
		t.Errorf("withdrawn, and %d writes; %q", n, w.Agent.Status().Containers[0].Why)
	}
	w.place.pods[0].Containers[0].Strategy.Receipts = 0
	w.place.pods = slices.Clone(w.place.pods)
	w.Run(time.Minute, nil)
	if n := len(w.Kernel.Writes()) - before; n < 15 || len(w.Agent.Status().Problems) > 0 {
		t.Errorf("with receipts: 0%%, %d writes in 20 spells; problems %q", n, w.Agent.Status().Problems)
	}
}

// TestNothingToWithhold: a container that may be handed out nothing has no spells, for there is nothing to withhold.
func TestNothingToWithhold(t *testing.T) {
	for seed := range uint64(2) {
		g := sampled("/lab/web", 0.3, bursts())
		g.Strategy.CFSQuotaBurstPercent = 100
		w := mustNew(t, Scenario{Kernel: mainline(4, seed), Threshold: 80, Events: true, Counts: true,
			Groups: []Group{g}})
		w.Run(20*time.Minute, nil)
		if r := receiptOf(t, w, g.Path); r.Treated+r.Withheld != 0 {
			t.Errorf("nothing could be handed out, and there are spells: %+v", r)
		}
	}
}

// Add starts a container.
func (w *World) Add(t *testing.T, g Group) {
	t.Helper()
	w.scene.Groups = append(w.scene.Groups, g)
	w.place.pods = slices.Clone(w.place.pods)
	w.make(g)
	if err := w.Limit(g.Path, g.Quota, g.Period); err != nil {
		t.Fatal(err)
	}
	w.Kernel.SetTasks(g.Path, max(1, g.Load.Threads))
	w.Kernel.SetLoad(g.Path, g.Load)
}

// TestWithheldRaises: where throttles are polled for, the raise is withheld in place of refills. A raise is given back
// when its spell is over: in the second half of a job's time, after it is done,
// the limit stands in both kinds of spells.
func TestWithheldRaises(t *testing.T) {
	polledAndSubscribed(t, func(t *testing.T, events bool) {
		const at = 1500 * ms // a job takes 600 ms when nothing is handed out
		g := sampled("/lab/web", 0.3, sim.Periodic(every, sim.Fixed(300*ms), 1))
		w := mustNew(t, Scenario{Kernel: mainline(4, 3), Threshold: 80, Events: events, Groups: []Group{g}})
		raised, left := 0, 0
		for range 100 {
			before := len(w.Kernel.Writes())
			w.Run(at, nil)
			if w.Kernel.Bandwidth(g.Path).Quota != g.Quota {
				left++
			}
			for _, x := range w.Kernel.Writes()[before:] {
				if strings.Contains(x.Name, "quota") || strings.Contains(x.Name, "cpu.max") {
					raised++
					break
				}
			}
			w.Run(every-at, nil)
		}
		r := receiptOf(t, w, g.Path)
		if r.Withheld < 20 || raised < 50 || raised > int(r.Treated)+2 || left > 0 {
			t.Errorf("%d treated, %d withheld, %d jobs with a raise, %d whose raise stayed", r.Treated, r.Withheld,
				raised, left)
		}
	})
}
