package policy

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/receipt"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// experimented is a group of which three spells are over, one that is on.
func experimented(t *testing.T) *answered {
	t.Helper()
	r := newAnswered(strategy.CFSQuotaBurstOnly)
	r.group.Strategy.Receipts = 0.3
	r.turn(t0.Add(time.Second))
	e, now := r.experiment(), r.event.At
	for range 3 {
		e.Begin(now, receipt.Meter{})
		o, over := e.Observe(receipt.Window{From: now, To: now.Add(time.Second), Quota: 50 * ms, Period: 100 * ms})
		if !over {
			t.Fatal("the spell is on")
		}
		r.state.receipts.Add(o)
		now = now.Add(10 * time.Second)
	}
	e.Begin(now, receipt.Meter{})
	return r
}

func (r *answered) experiment() *receipt.Experiment { return r.state.Receipt(r.group.ID) }

func (r *answered) turn(now time.Time) {
	r.group.Reading = sample.Reading{At: now, Counters: r.group.Reading.Counters}
	r.state.Decide(r.input(now))
}

// restart has another state go on, with what a file keeps.
func (r *answered) restart(t *testing.T, now time.Time) {
	t.Helper()
	data, err := json.Marshal(r.state.Kept(func() {}))
	if err != nil {
		t.Fatal(err)
	}
	var k KeptReceipts
	if err = json.Unmarshal(data, &k); err != nil {
		t.Fatal(err)
	}
	if len(k.Groups) > 1 && k.Groups[0].Cgroup == k.Groups[1].Cgroup && k.Groups[0].Inode == k.Groups[1].Inode {
		t.Errorf("two experiments of one group are kept: %s", data)
	}
	r.state = NewState(0)
	if err = r.state.Resume(k, now); err != nil {
		t.Fatal(err)
	}
}

// spells of the group and of the node.
func (r *answered) spells() (group, node int64) {
	treated, withheld := r.experiment().Saved.Arms()
	group = treated + withheld
	all := r.state.Receipts()
	treated, withheld = all.Saved.Arms()
	return group, treated + withheld
}

// TestReceiptsGoOn: after a restart the experiment of the same group with the same settings goes on; with another
// inode, part or setting it begins anew. The sums of the node go on in any case.
func TestReceiptsGoOn(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*answered)
		want   int64
	}{
		{"the same", func(*answered) {}, 3},
		{"another inode", func(r *answered) { r.group.Inode++ }, 0},
		{"another path", func(r *answered) { r.group.Path = "/b" }, 0},
		{"another part", func(r *answered) { r.group.Strategy.Receipts = 0.2 }, 0},
		{"another setting", func(r *answered) { r.group.Strategy.CPUBurstPercent++ }, 0},
		{"another bound", func(r *answered) { r.extra.PerPod = strategy.Bound{Set: true, CPUs: 2} }, 0},
		{"another threshold, which is not measured", func(r *answered) { r.group.Strategy.SharePoolThresholdPercent++ },
			3},
		{"another limit", func(r *answered) { r.group.Limit.Quota *= 2 }, 3},
	} {
		r := experimented(t)
		since := r.experiment().Since
		now := t0.Add(time.Hour)
		r.restart(t, now)
		c.change(r)
		r.turn(now)
		if group, node := r.spells(); group != c.want || node != 3 {
			t.Errorf("%s: %d spells, want %d; %d of the node", c.name, group, c.want, node)
		}
		if e := r.experiment(); c.want > 0 && (!e.Since.Equal(since) || e.Aborted != 1) || c.want == 0 &&
			!e.Since.Equal(now) {
			t.Errorf("%s: since %v, %d aborted", c.name, e.Since, e.Aborted)
		}
		r.restart(t, now) // and again
		if r.turn(now.Add(time.Second)); r.experiment().Since.Equal(now.Add(time.Second)) {
			t.Errorf("%s: after another restart it begins anew", c.name)
		}
	}
}

// TestReceiptsWait: the experiment of a group whose settings are not known yet waits, over restarts too, and not for
// ever. It does not wait for a group that a person has taken out of the experiment, nor for one that is gone.
func TestReceiptsWait(t *testing.T) {
	settings := func(r *answered, p strategy.Policy, part float64) {
		r.group.Strategy.Policy, r.group.Strategy.Receipts = p, part
	}
	for _, c := range []struct {
		name  string
		until func(*answered, time.Time)
		want  int64
	}{
		{"Kubernetes has said nothing", func(r *answered, now time.Time) {
			settings(r, strategy.None, 0.3)
			r.turn(now)
		}, 3},
		{"nothing of the part either", func(r *answered, now time.Time) { settings(r, strategy.None, 0); r.turn(now) },
			3},
		{"another restart", func(r *answered, now time.Time) {
			settings(r, strategy.None, 0.3)
			r.turn(now)
			r.restart(t, now.Add(unclaimedFor/2))
		}, 3},
		{"too long", func(r *answered, now time.Time) {
			settings(r, strategy.None, 0)
			r.turn(now)
			r.restart(t, now.Add(unclaimedFor/2))
			r.turn(now.Add(unclaimedFor + 1))
		}, 0},
		{"a person ends it", func(r *answered, now time.Time) {
			settings(r, strategy.CFSQuotaBurstOnly, 0)
			r.turn(now)
		}, 0},
		{"gone", func(r *answered, now time.Time) {
			in := r.input(now)
			in.Pods, in.Gone = nil, append(in.Gone, r.group.ID)
			r.state.Decide(in)
		}, 0},
	} {
		r := experimented(t)
		now := t0.Add(time.Hour)
		r.restart(t, now)
		c.until(r, now)
		settings(r, strategy.CFSQuotaBurstOnly, 0.3)
		r.turn(now.Add(unclaimedFor))
		if group, node := r.spells(); group != c.want || node != 3 {
			t.Errorf("%s: %d spells, want %d; %d of the node", c.name, group, c.want, node)
		}
	}
}

// TestReceiptsOutliveALimitOfThePod: while the limit of its pod binds first a container has no experiment, and goes on
// with it afterwards.
func TestReceiptsOutliveALimitOfThePod(t *testing.T) {
	r, now, before := experimented(t), t0.Add(time.Minute), int64(0)
	for i, own := range []bool{false, true, false} {
		now = now.Add(10 * ms)
		r.group.Reading.At = now
		in := r.input(now)
		in.Pods[0].Own = own
		in.Pods[0].Group = Group{ID: workload.ID{Path: "/pod", Inode: 9}, Limit: r.group.Limit, Disk: r.group.Disk}
		if r.state.Decide(in); (r.experiment() == nil) != own {
			t.Fatalf("the pod's limit binds first %v, and an experiment is on: %v", own, r.experiment() != nil)
		}
		if i == 0 {
			before, _ = r.spells()
			r.experiment().Begin(now, receipt.Meter{})
		}
	}
	if after, _ := r.spells(); before == 0 || after != before || r.experiment().Aborted != 1 {
		t.Errorf("%d spells, before there were %d; %d aborted", after, before, r.experiment().Aborted)
	}
}

// TestKeptSettingsAreWhole: each setting that ends an experiment when it changes is kept. A setting that is lost would
// end all experiments at each restart.
func TestKeptSettingsAreWhole(t *testing.T) {
	var s strategy.Strategy
	fill(reflect.ValueOf(&s).Elem())
	r := newAnswered(strategy.CFSQuotaBurstOnly)
	fill(reflect.ValueOf(&r.extra).Elem())
	r.group.Strategy = s
	r.group.Strategy.Policy, r.group.Strategy.Receipts = strategy.CFSQuotaBurstOnly, 0.1
	r.turn(t0.Add(time.Second))
	r.experiment().Begin(t0.Add(time.Second), receipt.Meter{})
	r.restart(t, t0.Add(time.Minute))
	if r.turn(t0.Add(time.Minute)); r.experiment().Aborted != 1 {
		t.Errorf("it begins anew: %+v", s)
	}
}

// fill sets each field to another value than the zero one.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(0.7)
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic(v.Kind())
	}
}

// TestBadReceipts: one group with a number that cannot be, and nothing is taken over.
func TestBadReceipts(t *testing.T) {
	for name, change := range map[string]func(*KeptReceipts){
		"of /a":       func(k *KeptReceipts) { k.Groups[0].Saved.Mean = math.NaN() },
		"of the node": func(k *KeptReceipts) { k.Node.Aborted = -1 },
	} {
		r := experimented(t)
		k := r.state.Kept(func() {})
		change(&k)
		r.state = NewState(0)
		if err := r.state.Resume(k, t0); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		r.turn(t0.Add(time.Second))
		if group, node := r.spells(); group != 0 || node != 0 {
			t.Errorf("%s: %d spells, %d of the node", name, group, node)
		}
	}
}
