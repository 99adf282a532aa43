package scx

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// Finding is what one check of a preflight found.
type Finding struct {
	Check  string `json:"check"`  // what was checked
	OK     bool   `json:"ok"`     // nothing stands in the way
	Detail string `json:"detail"` // what was found
}

// Obstacle is what a preflight found in the way.
type Obstacle struct{ Findings []Finding }

// Any says whether there is one.
func (o Obstacle) Any() bool {
	return slices.ContainsFunc(o.Findings, func(f Finding) bool { return !f.OK })
}

// Error names all obstacles.
func (o Obstacle) Error() string {
	var list []string
	for _, f := range o.Findings {
		if !f.OK {
			list = append(list, f.Detail)
		}
	}
	return "not loaded: " + strings.Join(list, "; ")
}

// ErrOccupied is another scheduler that is loaded.
var ErrOccupied = errors.New("another sched_ext scheduler is loaded")

// checkVacant is the check that no scheduler is loaded.
const checkVacant = "vacant"

// machine is what a preflight reads.
type machine struct {
	sys     string // where sysfs is mounted
	release string // uname -r
	types   func() (*btf.Spec, error)
}

func thisMachine() machine {
	var u unix.Utsname
	_ = unix.Uname(&u) // it has one pointer, and that is good
	return machine{sys: "/sys", release: unix.ByteSliceToString(u.Release[:]), types: btf.LoadKernelSpec}
}

// Preflight checks whether an object can be loaded here, without changing anything. What only the kernel's verifier can
// decide, Load finds out.
func Preflight(o *Object) []Finding { return thisMachine().preflight(o) }

func (m machine) preflight(o *Object) []Finding {
	state, err := readState(m.sys)
	if errors.Is(err, ErrNotThere) {
		return []Finding{{"sched_ext", false, m.lacking()}}
	}
	if err != nil {
		return []Finding{{"sched_ext", false, err.Error()}}
	}
	list := []Finding{{"sched_ext", true, "the kernel has it; " + fmt.Sprint(state.Enabled) +
		" schedulers were loaded since boot"}, m.vacant(state), m.lockdown()}
	types, err := m.types()
	if err != nil {
		return append(list, Finding{"types", false, fmt.Sprintf("the kernel has no type information "+
			"(/sys/kernel/btf/vmlinux): %v", err)})
	}
	list = append(list, Finding{"types", true, "the kernel has type information"})
	functions, operations := o.needs()
	return append(list, knowsFunctions(types, functions), knowsOperations(types, operations))
}

// lacking says why the kernel has no sched_ext.
func (m machine) lacking() string {
	var major, minor int
	if n, _ := fmt.Sscanf(m.release, "%d.%d", &major, &minor); n == 2 && (major > 6 || major == 6 && minor >= 12) {
		return "kernel " + m.release + " was built without CONFIG_SCHED_CLASS_EXT: it has no sched_ext"
	}
	return "kernel " + m.release + " has no sched_ext: mainline has it since 6.12"
}

func (m machine) vacant(s State) Finding {
	if s.State != disabled {
		return Finding{checkVacant, false, fmt.Sprintf("%v: %s is %s", ErrOccupied, s.Ops, s.State)}
	}
	return Finding{checkVacant, true, "no other scheduler is loaded"}
}

func (m machine) lockdown() Finding {
	mode, _ := os.ReadFile(m.sys + "/kernel/security/lockdown") // not there: no lockdown
	if strings.Contains(string(mode), "[confidentiality]") {
		return Finding{"lockdown", false,
			"kernel lockdown is set to confidentiality, which keeps programs from reading the scheduler"}
	}
	return Finding{"lockdown", true, "nothing is locked that is needed"}
}

// knowsFunctions: a function that the kernel does not have is a version that the object was not made for.
func knowsFunctions(types *btf.Spec, names []string) Finding {
	var missing, broken []string
	for _, name := range names {
		switch f := findKfunc(types, name); {
		case f == nil:
			missing = append(missing, name)
		case lacksImpl(types, f):
			broken = append(broken, name)
		}
	}
	if len(missing) > 0 {
		return Finding{"functions", false, "the kernel has not got " + strings.Join(missing, ", ") +
			": another version than the scheduler was made for"}
	}
	if len(broken) > 0 {
		return Finding{"functions", false, fmt.Sprintf("the kernel's type information lacks %s_impl: a fault of this "+
			"kernel's build (seen in Debian's 7.1 and 7.2, not in 7.0 and 7.3), for which the verifier refuses every "+
			"scheduler that calls %s", broken[0], strings.Join(broken, ", "))}
	}
	return Finding{"functions", true, fmt.Sprintf("the kernel has all %d that are called", len(names))}
}

func knowsOperations(types *btf.Spec, names []string) Finding {
	var table *btf.Struct
	if err := types.TypeByName(opsType, &table); err != nil {
		return Finding{"operations", false, "the kernel's types have no " + opsType}
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(table.Members, func(m btf.Member) bool { return m.Name == name })
	})
	if len(missing) > 0 {
		return Finding{"operations", false, "the kernel does not know the operations " + strings.Join(missing, ", ")}
	}
	return Finding{"operations", true, fmt.Sprintf("the kernel knows all %d", len(names))}
}
