package strategy

import "plimsoll/internal/cpu"

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
