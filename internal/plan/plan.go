// Package plan holds what is to be changed on a node, as data: which knob of which group, from what to what, and why.
package plan

import (
	"fmt"
	"strconv"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/workload"
)

// Knob is something of a control group, or of its tasks, that can be set. It is not a file name: the files differ by
// cgroup version.
type Knob string

// The knobs.
const (
	Quota    Knob = "quota"
	Burst    Knob = "burst"
	Weight   Knob = "weight"
	Idle     Knob = "idle"
	CPUs     Knob = "cpus"
	Identity Knob = "identity" // Group Identity, as cpu.bvt_warp_ns counts it
	// IdentitySysctl is the machine's switch of Group Identity, a sysctl. It is the root group's.
	IdentitySysctl Knob = "gate" // as it is in journals on disk
	// SubtreeControl says whether a group hands the cpuset controller on to its children (v2).
	SubtreeControl Knob = "handed" // as it is in journals on disk
	// Exclusive and Partition make CPUs exclusive by the kernel's own means (v2, 6.7 and later).
	Exclusive Knob = "exclusive"
	Partition Knob = "partition"
	// Slice and Cookie are the tasks' of a group and of what is below it: no file holds them.
	Slice  Knob = "slice"  // of EEVDF; 0s is the kernel's own
	Cookie Knob = "cookie" // of core scheduling; 0 is none
	// Shield is the number of tasks of the cpuset root that are kept in a group (v1): told of, and never a change.
	Shield Knob = "shield"
)

// OfTasks says whether each task of a group holds the knob, and not the group.
func (k Knob) OfTasks() bool { return k == Slice || k == Cookie }

// OfBandwidth says whether the knob is one of a group's bandwidth.
func (k Knob) OfBandwidth() bool { return k == Quota || k == Burst }

// OfCPUSet says whether the knob is a file of the cpuset controller.
func (k Knob) OfCPUSet() bool { return k == CPUs || k == Exclusive || k == Partition }

// Unset is what a task holds that nobody has set.
func (k Knob) Unset() Value {
	if k == Slice {
		return Time(0)
	}
	return Number(0)
}

// Value is a knob's value in one canonical spelling: "50ms" or "max" for times, a decimal number for weights and
// flags, a list such as "0-3" for CPUs. Values that are equal are spelled alike.
type Value string

// Time spells a quota or burst.
func Time(d time.Duration) Value {
	if d == cpu.Unlimited {
		return "max"
	}
	return Value(d.String())
}

// Number spells a weight or a flag.
func Number(n int64) Value { return Value(strconv.FormatInt(n, 10)) }

// Set spells a list of CPUs.
func Set(cpus cpu.Set) Value { return Value(cpus.String()) }

// Time reads a quota or burst back.
func (v Value) Time() (time.Duration, error) {
	if v == "max" {
		return cpu.Unlimited, nil
	}
	d, err := time.ParseDuration(string(v))
	if err != nil {
		return 0, fmt.Errorf("value %q is not a time", string(v))
	}
	return d, nil
}

// Number reads a weight or a flag back.
func (v Value) Number() (int64, error) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("value %q is not a number", string(v))
	}
	return n, nil
}

// Set reads a list of CPUs back.
func (v Value) Set() (cpu.Set, error) { return cpu.ParseSet(string(v)) }

// Change is one value to write. Where the file does not hold `from` any more, another program wrote it, and nothing is
// done.
type Change struct {
	Cgroup workload.ID `json:"cgroup"` // the group
	Knob   Knob        `json:"knob"`   // which file: `quota`, `burst`, `idle`, `cpus` ...
	From   Value       `json:"from"`   // what the file holds, such as `50ms`, `max`, `1` or `0-3`
	To     Value       `json:"to"`     // what it is to hold
	Min    Value       `json:"-"`      // the range that this owner may ever write here; journalled once
	Max    Value       `json:"-"`
	Quota  Value       `json:"-"`   // of a burst: the quota that the group's owner has written; "": not known
	Why    string      `json:"why"` // the reason
	// it puts the owner's value back: after it, nothing of Plimsoll's is in the file
	Restore bool `json:"restore,omitempty"`
	// a burst that is written unchanged, for what that does besides: it refills the group's runtime and ends a
	// throttle
	Refill bool `json:"refill,omitempty"`
	// it writes what the owner declares, whose own write was refused or undone: nothing is to be put back after it
	Repair bool `json:"repair,omitempty"`
}

// Key is the knob that the change is made to.
func (c Change) Key() Key { return Key{ID: c.Cgroup, Knob: c.Knob} }

// raises says whether the change gives more.
func (c Change) raises() bool {
	if c.Refill {
		return true
	}
	from, err1 := c.From.Time()
	to, err2 := c.To.Time()
	return err1 == nil && err2 == nil && to > from
}
