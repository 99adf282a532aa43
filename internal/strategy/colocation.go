package strategy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Mechanism is how the kernel is made to run online tasks before offline ones.
type Mechanism string

// The mechanisms.
const (
	MechanismAuto          Mechanism = "auto"          // the best that is to be had without asking
	MechanismGroupIdentity Mechanism = "groupIdentity" // cpu.bvt_warp_ns, cpu.identity (Alibaba Cloud Linux, Anolis)
	MechanismIdle          Mechanism = "idle"          // cpu.idle (5.15)
	MechanismWeight        Mechanism = "weight"        // the least weight
	MechanismSlice         Mechanism = "slice"         // short slices for online tasks (6.12), and nothing else
	// no offline task beside another on a core (5.14), with idle underneath
	MechanismCoreSched Mechanism = "coreSched"
	MechanismSchedExt  Mechanism = "schedExt" // a scheduler of our own (6.17), with idle underneath
	MechanismNone      Mechanism = "none"     // touch nothing; put back what was changed
)

// Mechanisms lists them all.
func Mechanisms() []Mechanism {
	return []Mechanism{MechanismAuto, MechanismGroupIdentity, MechanismIdle, MechanismWeight, MechanismSlice,
		MechanismCoreSched, MechanismSchedExt, MechanismNone}
}

// CPUQOS is what a class of containers gets, in the peer's terms.
type CPUQOS struct {
	Enable        bool  `json:"enable"`
	GroupIdentity int64 `json:"groupIdentity"` // 2, 1: before others; -1, -2: behind them; 0: neither
	SchedIdle     int64 `json:"schedIdle"`     // 1: behind all others, whatever groupIdentity says
	CoreExpeller  bool  `json:"coreExpeller"`  // no offline task beside it on a core
}

// Rank is on which side of the priority a container stands.
type Rank string

// The ranks.
const (
	Online  Rank = "online"
	Offline Rank = "offline"
	Neutral Rank = "neutral" // neither is preferred nor stands back
)

// Rank reads the side off what a container gets.
func (q CPUQOS) Rank() Rank {
	switch {
	case !q.Enable:
		return Neutral
	case q.SchedIdle == 1 || q.GroupIdentity < 0:
		return Offline
	case q.GroupIdentity > 0:
		return Online
	}
	return Neutral
}

// Identity is the value that Group Identity would have for what a container gets, and below all of its values for one
// that is idle: the greater of two is preferred.
func (q CPUQOS) Identity() int64 {
	switch {
	case !q.Enable:
		return 0
	case q.SchedIdle == 1:
		return -3
	}
	return q.GroupIdentity
}

// Expels says whether no offline task is to run beside it on a core: that is the right of online work.
func (q CPUQOS) Expels() bool { return q.Rank() == Online && q.CoreExpeller }

// Colocation is what is asked for on a node where online and offline work share the CPUs.
// The zero value asks for nothing.
type Colocation struct {
	Mechanism Mechanism
	// Slice is that of online tasks (EEVDF, 6.12), besides what the mechanism does; 0: the kernel's own.
	Slice time.Duration
	// KubeQOS has pods without a class judged by the kubelet's: BestEffort is offline.
	KubeQOS  bool
	LSR      CPUQOS // and LSE, as at the peer
	LS       CPUQOS
	BE       CPUQOS
	System   CPUQOS
	Suppress Suppress
	SchedExt SchedExt
}

// SchedExt is what the scheduler of mechanism schedExt is to be like.
type SchedExt struct {
	FloorPercent    float64 // of a CPU that online work fills: what offline work gets of it
	WatchdogSeconds int64   // the kernel ends the scheduler when a task has waited so long
}

// SchedExtPatch is a SchedExt with holes.
type SchedExtPatch struct {
	FloorPercent    *float64
	WatchdogSeconds *int64
}

// Check reports the first field that is out of range. A floor below the least is less than a tick in each time in which
// the watchdog looks, and 30 s is the kernel's own bound (SCX_WATCHDOG_MAX_TIMEOUT).
func (p SchedExtPatch) Check() error {
	if v := p.FloorPercent; v != nil && !(*v >= 0.1 && *v <= 50) {
		return &FieldError{"floorPercent", fmt.Sprintf("%v is outside 0.1..50", *v)}
	}
	if v := p.WatchdogSeconds; v != nil && (*v < 4 || *v > 30) {
		return &FieldError{"watchdogSeconds", fmt.Sprintf("%d is outside 4..30", *v)}
	}
	return nil
}

// SuppressPolicy is how offline work is bounded.
type SuppressPolicy string

// The policies, as the peer names them.
const (
	SuppressQuota  SuppressPolicy = "cfsQuota"
	SuppressCPUSet SuppressPolicy = "cpuset" // where CPUs can be bound and nobody has any of his own; else by quota
)

// SuppressPolicies lists them.
func SuppressPolicies() []string { return []string{string(SuppressQuota), string(SuppressCPUSet)} }

// Suppress bounds what offline work uses, in the peer's terms.
type Suppress struct {
	Enable           bool
	Policy           SuppressPolicy
	ThresholdPercent int64 // of the node's CPUs: above it, offline work has to use less
	MinPercent       int64 // of the node's CPUs, that it may use in any case
}

// SuppressPatch is a Suppress with holes.
type SuppressPatch struct {
	Enable           *bool
	Policy           *SuppressPolicy
	ThresholdPercent *int64
	MinPercent       *int64
}

// Check reports the first field that is out of range.
func (p SuppressPatch) Check() error {
	for _, f := range []struct {
		name  string
		value *int64
	}{{"cpuSuppressThresholdPercent", p.ThresholdPercent}, {"cpuSuppressMinPercent", p.MinPercent}} {
		if f.value != nil && (*f.value < 0 || *f.value > 100) {
			return &FieldError{f.name, fmt.Sprintf("%d is outside 0..100", *f.value)}
		}
	}
	return nil
}

// DefaultColocation is what patches are laid over: every class is as the peer has it, and none is enabled.
func DefaultColocation() Colocation {
	return Colocation{
		Mechanism: MechanismAuto,
		LSR:       CPUQOS{GroupIdentity: 2, CoreExpeller: true},
		LS:        CPUQOS{GroupIdentity: 2, CoreExpeller: true},
		BE:        CPUQOS{GroupIdentity: -1},
		Suppress:  Suppress{Policy: SuppressQuota, ThresholdPercent: 65, MinPercent: 5},
		SchedExt:  SchedExt{FloorPercent: 0.3, WatchdogSeconds: 20},
	}
}

// Enabled says whether anything is asked for.
func (c Colocation) Enabled() bool {
	return c.Mechanism != MechanismNone && (c.LSR.Enable || c.LS.Enable || c.BE.Enable || c.System.Enable)
}

// Expels says whether some class is to have no offline task beside it on a core.
func (c Colocation) Expels() bool {
	return slices.ContainsFunc([]CPUQOS{c.LSR, c.LS, c.BE, c.System}, CPUQOS.Expels)
}

// CPUQOSPatch is a CPUQOS with holes: a nil field inherits.
type CPUQOSPatch struct {
	Enable        *bool  `json:"enable,omitempty"`
	GroupIdentity *int64 `json:"groupIdentity,omitempty"`
	SchedIdle     *int64 `json:"schedIdle,omitempty"`
	CoreExpeller  *bool  `json:"coreExpeller,omitempty"`
}

// Over lays the patch over q.
func (p CPUQOSPatch) Over(q CPUQOS) CPUQOS {
	set(&q.Enable, p.Enable)
	set(&q.GroupIdentity, p.GroupIdentity)
	set(&q.SchedIdle, p.SchedIdle)
	set(&q.CoreExpeller, p.CoreExpeller)
	return q
}

// Check reports the first field that is out of range: the bounds are the kernel's.
func (p CPUQOSPatch) Check() error {
	if v := p.GroupIdentity; v != nil && (*v < -2 || *v > 2) {
		return &FieldError{"groupIdentity", fmt.Sprintf("%d is outside -2..2", *v)}
	}
	if v := p.SchedIdle; v != nil && *v != 0 && *v != 1 {
		return &FieldError{"schedIdle", fmt.Sprintf("%d is neither 0 nor 1", *v)}
	}
	return nil
}

// ColocationPatch is a Colocation with holes.
type ColocationPatch struct {
	Enable    *bool // of all classes
	Mechanism *Mechanism
	Slice     *time.Duration
	KubeQOS   *bool
	LSR       CPUQOSPatch
	LS        CPUQOSPatch
	BE        CPUQOSPatch
	System    CPUQOSPatch
	Suppress  SuppressPatch
	SchedExt  SchedExtPatch
}

// Over lays the patch over c. What is said of a class counts more than what is said of all.
func (p ColocationPatch) Over(c Colocation) Colocation {
	switch {
	case p == ColocationPatch{}:
		return c
	case c == Colocation{}:
		c = DefaultColocation()
	}
	set(&c.Mechanism, p.Mechanism)
	set(&c.Slice, p.Slice)
	set(&c.KubeQOS, p.KubeQOS)
	set(&c.Suppress.Enable, p.Suppress.Enable)
	set(&c.Suppress.Policy, p.Suppress.Policy)
	set(&c.Suppress.ThresholdPercent, p.Suppress.ThresholdPercent)
	set(&c.Suppress.MinPercent, p.Suppress.MinPercent)
	set(&c.SchedExt.FloorPercent, p.SchedExt.FloorPercent)
	set(&c.SchedExt.WatchdogSeconds, p.SchedExt.WatchdogSeconds)
	for _, class := range []struct {
		to *CPUQOS
		by CPUQOSPatch
	}{{&c.LSR, p.LSR}, {&c.LS, p.LS}, {&c.BE, p.BE}, {&c.System, p.System}} {
		set(&class.to.Enable, p.Enable)
		*class.to = class.by.Over(*class.to)
	}
	return c
}

// The slices that the kernel takes (kernel/sched/fair.c, __setparam_fair).
const (
	leastSlice = 100 * time.Microsecond
	mostSlice  = 100 * time.Millisecond
)

// Check reports a mechanism that is none, and a slice that the kernel would cut.
func (p ColocationPatch) Check() error {
	if s := p.Slice; s != nil && *s != 0 && (*s < leastSlice || *s > mostSlice) {
		return &FieldError{"slice", fmt.Sprintf("%v is outside %v..%v", *s, leastSlice, mostSlice)}
	}
	if p.Mechanism == nil {
		return nil
	}
	var names []string
	for _, m := range Mechanisms() {
		if m == *p.Mechanism {
			return nil
		}
		names = append(names, string(m))
	}
	return &FieldError{"mechanism", fmt.Sprintf("%q is not one of %s", *p.Mechanism, strings.Join(names, ", "))}
}
