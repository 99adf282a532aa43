// Package capability says which capabilities of root this process lacks (capabilities(7)), so that a refusal can name
// the one that would help.
package capability

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Capability is one that some feature of Plimsoll needs.
type Capability uint

// The capabilities that the unit file and the chart can grant.
const (
	DACOverride Capability = unix.CAP_DAC_OVERRIDE // write files of another user
	Ptrace      Capability = unix.CAP_SYS_PTRACE   // give core-scheduling cookies to tasks of other users
	// real-time priority; slices of tasks of other users; move them between cpusets
	Nice     Capability = unix.CAP_SYS_NICE
	Resource Capability = unix.CAP_SYS_RESOURCE // raise RLIMIT_MEMLOCK
	Perfmon  Capability = unix.CAP_PERFMON      // attach eBPF programs to tracepoints
	BPF      Capability = unix.CAP_BPF          // load eBPF programs
)

// All lists them.
func All() []Capability { return []Capability{DACOverride, Ptrace, Nice, Resource, Perfmon, BPF} }

// String is the kernel's name.
func (c Capability) String() string {
	switch c {
	case DACOverride:
		return "CAP_DAC_OVERRIDE"
	case Ptrace:
		return "CAP_SYS_PTRACE"
	case Nice:
		return "CAP_SYS_NICE"
	case Resource:
		return "CAP_SYS_RESOURCE"
	case Perfmon:
		return "CAP_PERFMON"
	case BPF:
		return "CAP_BPF"
	}
	return fmt.Sprintf("capability %d", uint(c))
}

// Missing lists which of these the calling thread does not have in effect. Where the kernel does not say, it lists
// none, and returns the error.
func Missing(want ...Capability) (List, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // 32 capabilities each
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return nil, fmt.Errorf("capget: %w", err)
	}
	return missing(uint64(sets[1].Effective)<<32|uint64(sets[0].Effective), want), nil
}

// missing lists those that are not in a set of bits.
func missing(effective uint64, want []Capability) List {
	return slices.DeleteFunc(slices.Clone(want), func(c Capability) bool { return effective>>c&1 == 1 })
}

// List is some capabilities, for people.
type List []Capability

func (l List) String() string {
	names := make([]string, len(l))
	for i, c := range l {
		names[i] = c.String()
	}
	return strings.Join(names, " and ")
}
