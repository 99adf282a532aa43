// Package strategy says what Plimsoll is asked to do for a container: a policy and its parameters, with the names,
// defaults and meaning of Koordinator and ACK.
package strategy

import (
	"fmt"
	"strings"

	"plimsoll/internal/cpu"
)

// Policy chooses the mechanisms.
type Policy string

// The four policies.
const (
	None              Policy = "none"              // touch nothing; put back what was changed
	CPUBurstOnly      Policy = "cpuBurstOnly"      // the kernel's burst buffer
	CFSQuotaBurstOnly Policy = "cfsQuotaBurstOnly" // raise the quota on throttling
	Auto              Policy = "auto"              // burst first, quota for what burst did not cover
)

// policies lists the valid policies.
var policies = []Policy{None, CPUBurstOnly, CFSQuotaBurstOnly, Auto}

// Burst says whether the policy uses the kernel's burst buffer.
func (p Policy) Burst() bool { return p == Auto || p == CPUBurstOnly }

// Quota says whether the policy raises quotas.
func (p Policy) Quota() bool { return p == Auto || p == CFSQuotaBurstOnly }

// Unlimited is the value of CFSQuotaBurstPeriodSeconds that sets no budget.
const Unlimited = -1

// Strategy is the whole answer for one container.
type Strategy struct {
	Policy Policy `json:"policy" yaml:"policy"`
	// CPUBurstPercent sizes the burst buffer, in percent of the limit.
	CPUBurstPercent int64 `json:"cpuBurstPercent" yaml:"cpuBurstPercent"`
	// CFSQuotaBurstPercent caps the CPU used per period, in percent of the limit.
	CFSQuotaBurstPercent int64 `json:"cfsQuotaBurstPercent" yaml:"cfsQuotaBurstPercent"`
	// CFSQuotaBurstPeriodSeconds is how long a container may run at the cap; -1: no bound.
	CFSQuotaBurstPeriodSeconds int64 `json:"cfsQuotaBurstPeriodSeconds" yaml:"cfsQuotaBurstPeriodSeconds"`
	// StartupSeconds is for how long at most a new container is in its start: its throttles are ended one by one, and
	// its quota stays as it is. All starts of a pod share it. An extension; the peers have no such field.
	StartupSeconds int64 `json:"startupSeconds" yaml:"startupSeconds"`
	// StartupBurstPercent caps the CPU used per period of a start, in percent of the limit, where that is more than
	// CFSQuotaBurstPercent. 0: not said, and CFSQuotaBurstPercent is the cap of a start too. An extension.
	StartupBurstPercent int64 `json:"startupBurstPercent,omitempty" yaml:"startupBurstPercent"`
	// SharePoolThresholdPercent is the node's CPU use above which raised quotas are taken back.
	SharePoolThresholdPercent int64 `json:"sharePoolThresholdPercent" yaml:"sharePoolThresholdPercent"`
	// LoadLinePercent is in how many of the periods everybody on the node is to get what was admitted: bursts are cut
	// so that it holds. 0: not asked for. An extension; the peers have no such field.
	LoadLinePercent float64 `json:"loadLinePercent,omitempty" yaml:"loadLinePercent"`
	// Receipts is the part of the busy spells in which nothing is handed out above the limit, so that what that causes
	// can be measured. 0: none. An extension.
	Receipts float64 `json:"receipts,omitempty" yaml:"receipts"`
}

// Default is the strategy where nothing is configured.
func Default() Strategy {
	return Strategy{Policy: None, CPUBurstPercent: 1000, CFSQuotaBurstPercent: 300,
		CFSQuotaBurstPeriodSeconds: Unlimited, StartupSeconds: 60, SharePoolThresholdPercent: 50}
}

// Patch is a strategy with holes: a nil field inherits.
type Patch struct {
	Policy                     *Policy  `json:"policy,omitempty" yaml:"policy"`
	CPUBurstPercent            *int64   `json:"cpuBurstPercent,omitempty" yaml:"cpuBurstPercent"`
	CFSQuotaBurstPercent       *int64   `json:"cfsQuotaBurstPercent,omitempty" yaml:"cfsQuotaBurstPercent"`
	CFSQuotaBurstPeriodSeconds *int64   `json:"cfsQuotaBurstPeriodSeconds,omitempty" yaml:"cfsQuotaBurstPeriodSeconds"`
	StartupSeconds             *int64   `json:"startupSeconds,omitempty" yaml:"startupSeconds"`
	StartupBurstPercent        *int64   `json:"startupBurstPercent,omitempty" yaml:"startupBurstPercent"`
	SharePoolThresholdPercent  *int64   `json:"sharePoolThresholdPercent,omitempty" yaml:"sharePoolThresholdPercent"`
	LoadLinePercent            *float64 `json:"loadLinePercent,omitempty" yaml:"loadLinePercent"`
	Receipts                   *float64 `json:"receipts,omitempty" yaml:"receipts"`
}

// Over lays the patch over s, field by field.
func (p Patch) Over(s Strategy) Strategy {
	set(&s.Policy, p.Policy)
	set(&s.CPUBurstPercent, p.CPUBurstPercent)
	set(&s.CFSQuotaBurstPercent, p.CFSQuotaBurstPercent)
	set(&s.CFSQuotaBurstPeriodSeconds, p.CFSQuotaBurstPeriodSeconds)
	set(&s.StartupSeconds, p.StartupSeconds)
	set(&s.StartupBurstPercent, p.StartupBurstPercent)
	set(&s.SharePoolThresholdPercent, p.SharePoolThresholdPercent)
	set(&s.LoadLinePercent, p.LoadLinePercent)
	set(&s.Receipts, p.Receipts)
	return s
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// Number is a field that is a whole number.
type Number struct {
	Name   string
	Node   bool // of the node as a whole: no container has one of its own
	Lo, Hi int64
	Of     func(*Patch) **int64
	In     func(*Strategy) *int64
}

// Numbers is the one table of these fields. The upper bounds are the peer's CRD's, and for the fields that it leaves
// open one that no machine needs.
func Numbers() []Number {
	type (
		patch = Patch
		whole = Strategy
	)
	return []Number{
		{"cpuBurstPercent", false, 0, 10000,
			func(p *patch) **int64 { return &p.CPUBurstPercent }, func(s *whole) *int64 { return &s.CPUBurstPercent }},
		{"cfsQuotaBurstPercent", false, 100, 10000,
			func(p *patch) **int64 { return &p.CFSQuotaBurstPercent },
			func(s *whole) *int64 { return &s.CFSQuotaBurstPercent }},
		{"cfsQuotaBurstPeriodSeconds", false, -1, 365 * 24 * 3600,
			func(p *patch) **int64 { return &p.CFSQuotaBurstPeriodSeconds },
			func(s *whole) *int64 { return &s.CFSQuotaBurstPeriodSeconds }},
		{"startupSeconds", false, 0, 600,
			func(p *patch) **int64 { return &p.StartupSeconds }, func(s *whole) *int64 { return &s.StartupSeconds }},
		{"startupBurstPercent", false, 100, 10000,
			func(p *patch) **int64 { return &p.StartupBurstPercent },
			func(s *whole) *int64 { return &s.StartupBurstPercent }},
		{"sharePoolThresholdPercent", true, 0, 100, func(p *patch) **int64 { return &p.SharePoolThresholdPercent },
			func(s *whole) *int64 { return &s.SharePoolThresholdPercent }},
	}
}

// FieldError names the field at fault, so that a reader of configuration can point at its line.
type FieldError struct {
	Field string
	Msg   string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Msg }

// Check reports the first field of the patch that is out of range.
func (p Patch) Check() error {
	if p.Policy != nil && !known(*p.Policy) {
		return &FieldError{"policy", fmt.Sprintf("%q is not one of %s", *p.Policy, names())}
	}
	for _, n := range Numbers() {
		if v := *n.Of(&p); v != nil && (*v < n.Lo || *v > n.Hi) {
			return &FieldError{n.Name, fmt.Sprintf("%d is outside %d..%d", *v, n.Lo, n.Hi)}
		}
	}
	if v := p.LoadLinePercent; v != nil && *v != 0 && !(*v >= 50 && *v <= 99.999) {
		return &FieldError{"loadLinePercent", fmt.Sprintf("%g is neither 0 nor within 50..99.999", *v)}
	}
	if v := p.Receipts; v != nil && *v != 0 && !(*v >= 0.001 && *v <= 0.5) {
		return &FieldError{"receipts", fmt.Sprintf("%g%% is neither 0%% nor within 0.1%%..50%%", *v*100)}
	}
	return nil
}

func known(p Policy) bool {
	for _, k := range policies {
		if p == k {
			return true
		}
	}
	return false
}

func names() string {
	list := make([]string, len(policies))
	for i, p := range policies {
		list[i] = string(p)
	}
	return strings.Join(list, ", ")
}

// Node is the whole answer for a node: the strategy that its containers start from, and what applies to the node only.
type Node struct {
	Strategy
	// Colocation is what online and offline classes get.
	Colocation Colocation
	// Extra is how many CPUs above limits are handed out at most.
	Extra ExtraCores
}

// DefaultNode is the node where nothing is configured.
func DefaultNode() Node { return Node{Strategy: Default()} }

// NodePatch is a Node with holes. Extra is not in it: its bounds have holes themselves (ExtraCores.Over).
type NodePatch struct {
	Patch
	Colocation ColocationPatch
}

// Over lays the patch over n, field by field.
func (p NodePatch) Over(n Node) Node {
	n.Strategy = p.Patch.Over(n.Strategy)
	n.Colocation = p.Colocation.Over(n.Colocation)
	return n
}

// ReservePolicy chooses how CPUs are made exclusive.
type ReservePolicy string

// The policies.
const (
	ReserveNone   ReservePolicy = "none"   // nobody has exclusive CPUs; put back what was changed
	ReserveCPUSet ReservePolicy = "cpuset" // cpuset.cpus of those who have, and of everybody else
	ReserveAuto   ReservePolicy = "auto"   // a cpuset partition where the kernel has them, else as cpuset
)

// ReservePolicies lists the valid policies.
func ReservePolicies() []string {
	return []string{string(ReserveNone), string(ReserveCPUSet), string(ReserveAuto)}
}

// Reserve is how the CPUs of a node are shared out to those who ask for exclusive CPUs.
type Reserve struct {
	Policy    ReservePolicy
	MinShared float64 // CPUs that stay shared at least
	CPUs      cpu.Set // never given away: the system's, the kubelet's
	Shield    bool    // keep the tasks of the cpuset root off them (v1)
	// every container with a request or limit asks for exclusive CPUs, unless its class or its own word says otherwise
	All    bool
	Strict bool // with All: its own CPUs and no others
}

// DefaultReserve is what holds where nothing is configured.
func DefaultReserve() Reserve { return Reserve{Policy: ReserveNone, MinShared: 1} }
