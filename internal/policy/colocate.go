package policy

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Online work strictly before offline work.
//
// Problem: two containers on a node share its CPUs by their weights, so that offline work, which takes all the CPU there
// is, delays online work by its share. The kernels have several mechanisms against it, and none that all have; the knobs
// count among siblings; and kubelet, systemd and runtimes write the same files.
//
// Approach: of a tree of containers with grades, Levels finds the groups at which the priority takes hold; the driver of
// the mechanism says which knob of them is to hold what; Plan compares that with what stands in the files and makes
// changes of the difference. A value of ours that its owner has put back is written again after a pause that doubles
// while the owner keeps at it; any other value is foreign and left alone. What is no longer wanted is put back, and kept in
// mind until it is: the kernel may refuse it at first, as it does a limit that some other group's is in the way of.
//
// Known limits: a weight that an owner changes while ours stands counts as foreign, but for the kubelet's.

// Setting is a knob of a group and what it is to hold.
type Setting struct {
	workload.ID
	Knob  plan.Knob
	Value plan.Value
	Why   string
	Min   plan.Value // of a value that changes: its range, to be journalled once
	Max   plan.Value
	Base  plan.Value // what it goes back to, where something of ours can stand in a file that we have not written
	// Follows: its owner writes new values of his own at times. That is what it goes back to then.
	Follows bool
	// Sheds: the kernel takes CPUs out of it that go offline, for good (cpuset.cpus, v1). Nobody else has written then.
	Sheds bool
}

// Key names the knob.
func (s Setting) Key() Key { return Key{s.ID, s.Knob} }

// Key is one knob of one group.
type Key struct {
	workload.ID
	Knob plan.Knob
}

// Settings is what the mechanism wants of the levels, and the slice that is asked for besides; 0: none.
func Settings(name strategy.Mechanism, slice time.Duration, levels []Level, m Machine) []Setting {
	d := driverOf(name)
	if d == nil {
		return nil
	}
	var list []Setting
	for _, l := range levels {
		list = append(list, d.knobs(l, m)...)
	}
	list = append(list, identitySysctl(list, m)...)
	return append(list, slicesOf(name, slice, levels, m)...)
}

// Standing is a knob of the mechanism and what became of it.
type Standing struct {
	Setting
	Have     plan.Value
	InForce  bool
	Since    time.Time
	Resets   int64 // times that the owner put its value back
	Refused  int64
	Foreign  bool
	Leaving  bool   // no longer wanted, and to go back to the original
	Problem  string // of the last write
	Original plan.Value
}

// Colocation is what is remembered of the knobs from turn to turn. It depends on its inputs only.
type Colocation struct{ knobs map[Key]*knob }

type knob struct {
	hold holdOf[plan.Value]
	Standing
}

// NewColocation remembers nothing.
func NewColocation() *Colocation { return &Colocation{knobs: map[Key]*knob{}} }

// undisturbed is how long a value must stand for the next reset not to count as a quarrel with its owner.
const undisturbed = 20 * time.Second

// Held lists the knobs that may hold something of ours.
func (c *Colocation) Held() []Key {
	var list []Key
	for k := range c.knobs {
		list = append(list, k)
	}
	sort.Slice(list, func(i, j int) bool {
		return list[i].Path < list[j].Path || list[i].Path == list[j].Path && list[i].Knob < list[j].Knob
	})
	return list
}

// Owns says whether what stands in a knob is ours.
func (c *Colocation) Owns(key Key) bool {
	k := c.knobs[key]
	return k != nil && k.hold.ours
}

// Adopt books a value of ours in a file that we have not written: a group was made while the one above it held it.
func (c *Colocation) Adopt(s Setting, held plan.Value) {
	k := &knob{}
	k.hold = holdOf[plan.Value]{known: true, base: s.Base, wrote: held, ours: true}
	c.knobs[s.Key()] = k
}

// Before is what stood in a knob before us, where we hold it.
func (c *Colocation) Before(key Key) (plan.Value, bool) {
	k := c.knobs[key]
	if k == nil || !k.hold.ours {
		return "", false
	}
	return k.hold.base, true
}

// Wrote is the value of ours that a knob took last, "" for none.
func (c *Colocation) Wrote(key Key) plan.Value {
	if k := c.knobs[key]; k != nil {
		return k.hold.wrote
	}
	return ""
}

// ColocationNote is something that happened to a knob and is to be said once.
type ColocationNote struct {
	Key
	Event Event
	Found plan.Value
}

// Plan makes changes of the difference between what is wanted and what stands. A knob that is not in stands is gone, but
// for those that could not be read: whose value stands in them is as it was.
func (c *Colocation) Plan(now time.Time, wanted []Setting, stands map[Key]plan.Value, unread ...Key) (changes []plan.Change, notes []ColocationNote) {
	want := map[Key]bool{}
	for _, s := range wanted {
		disk, there := stands[s.Key()]
		if !there {
			continue
		}
		want[s.Key()] = true
		k := c.knobs[s.Key()]
		if k == nil {
			k = &knob{}
			c.knobs[s.Key()] = k
		}
		k.ask(s, disk)
		notes = append(notes, k.observe(now)...)
		if ch, ok := k.change(now); ok {
			changes = append(changes, ch)
		}
	}
	var backs []plan.Change
	for _, key := range c.Held() {
		if want[key] {
			continue
		}
		k := c.knobs[key]
		if slices.Contains(unread, key) {
			k.InForce, k.Problem = false, "cannot be read"
			continue
		}
		disk, there := stands[key]
		k.shed(disk)
		if !there || !k.hold.ours || disk != k.hold.wrote && !key.Knob.OfTasks() {
			delete(c.knobs, key)
			continue
		}
		k.leave(disk)
		if key.Knob == plan.IdentitySysctl && c.identified() {
			continue // without it an identity cannot be put back
		}
		if k.hold.retry.Ready(now) {
			backs = append(backs, k.back(disk))
		}
	}
	return append(backs, changes...), notes // a weight cannot be put back under the idle that comes in its place
}

// identified says whether some group has an identity of ours.
func (c *Colocation) identified() bool {
	for key, k := range c.knobs {
		if key.Knob == plan.Identity && k.hold.ours {
			return true
		}
	}
	return false
}

// ask has the knob hold what is wanted. What came of putting it back before says nothing of that.
func (k *knob) ask(s Setting, disk plan.Value) {
	if k.Leaving {
		k.hold.retry, k.Problem = backoff{}, ""
	}
	k.Setting, k.Have, k.Leaving = s, disk, false
}

// leave has the knob go back to what stood there before us.
func (k *knob) leave(disk plan.Value) {
	if !k.Leaving {
		k.hold.retry = backoff{}
	}
	k.Leaving, k.InForce = true, false
	k.Value, k.Have, k.Why = k.hold.base, disk, notAsked
}

const notAsked = "no longer asked for"

// observe compares what stands in the file with what is known.
func (k *knob) observe(now time.Time) []ColocationNote {
	if k.InForce && now.Sub(k.Since) >= undisturbed {
		k.hold.retry = backoff{}
	}
	if k.Follows && k.hold.ours && k.Have != k.hold.wrote {
		k.hold.base = k.Have
	}
	k.shed(k.Have)
	e := noEvent
	if k.Knob.OfTasks() { // which nobody puts back: tasks come and go
		k.hold.base = k.Knob.Unset()
	} else {
		e = k.hold.observe(now, k.Have, nil)
	}
	k.Original = k.hold.base
	k.Foreign = k.hold.foreign
	if in := k.Have == k.Value; in != k.InForce {
		k.InForce, k.Since = in, now
	}
	if k.InForce {
		k.Problem = "" // whoever set it
	}
	switch e {
	case Reset:
		k.Resets++
	case noEvent:
		return nil
	}
	return []ColocationNote{{k.Key(), e, k.Have}}
}

// shed takes what the kernel left of a value of ours for ours.
func (k *knob) shed(disk plan.Value) {
	left, err := cpu.ParseSet(string(disk))
	had, err2 := cpu.ParseSet(string(k.hold.wrote))
	if k.Sheds && k.hold.ours && err == nil && err2 == nil && left.Within(had) {
		k.hold.wrote = disk
	}
}

// change is the write that is due, if one is.
func (k *knob) change(now time.Time) (plan.Change, bool) {
	if k.hold.foreign || k.InForce || !k.hold.retry.Ready(now) {
		return plan.Change{}, false
	}
	return plan.Change{Cgroup: k.ID, Knob: k.Knob, From: k.Have, To: k.Value, Min: k.Min, Max: k.Max, Why: k.Why}, true
}

// back is the write that puts back what stood there before us.
func (k *knob) back(disk plan.Value) plan.Change {
	return plan.Change{Cgroup: k.ID, Knob: k.Knob, From: disk, To: k.hold.base, Why: notAsked, Restore: true}
}

// Learn takes what became of the changes.
func (c *Colocation) Learn(now time.Time, results []plan.Result) {
	for _, r := range results {
		k := c.knobs[Key{r.Change.Cgroup, r.Change.Knob}]
		if k == nil {
			continue
		}
		k.Problem = ""
		switch {
		case k.Leaving && r.Outcome != plan.Refused:
			delete(c.knobs, k.Key())
		case r.Outcome == plan.Applied, r.Outcome == plan.Clamped:
			k.hold.learn(r.InForce)
			k.Have, k.InForce, k.Since = r.InForce, r.InForce == k.Value, now
			if !k.InForce { // clamped: asked for once in a while
				k.hold.retry.hit(now)
			}
		case r.Outcome == plan.Refused, r.Outcome == plan.Trampled:
			k.hold.retry.hit(now)
			k.Refused++
			k.Problem = fmt.Sprintf("%s: %s", r.Outcome, r.Err)
		}
	}
}

// Restored takes note that everything was put back by command: what stands now is not an owner's doing, but where the
// kernel refused.
func (c *Colocation) Restored(results []plan.Result) {
	refused := map[Key]bool{}
	for _, r := range results {
		if r.Outcome == plan.Refused {
			refused[Key{r.Change.Cgroup, r.Change.Knob}] = true
		}
	}
	maps.DeleteFunc(c.knobs, func(k Key, _ *knob) bool { return !refused[k] })
}

// Standings lists the knobs that are wanted, and those that are not put back yet, by path.
func (c *Colocation) Standings() []Standing {
	var list []Standing
	for _, key := range c.Held() {
		list = append(list, c.knobs[key].Standing)
	}
	return list
}

// InForce lists the offline groups at which the mechanism is verified in force: the knobs of each hold what they are to.
// What is below such a group stands back with it.
func InForce(standings []Standing, exposed []string) map[workload.ID]bool {
	groups := map[workload.ID]bool{}
	for _, s := range standings {
		if s.Leaving || s.Knob == plan.IdentitySysctl || s.Knob == plan.Quota || s.Knob == plan.Burst || s.Knob == plan.CPUs || s.Knob.OfTasks() {
			continue // prefers nobody, or not strictly
		}
		before, seen := groups[s.ID]
		groups[s.ID] = s.InForce && (before || !seen) && !slices.Contains(exposed, s.Path)
	}
	return groups
}
