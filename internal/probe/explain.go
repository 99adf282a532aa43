package probe

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/capability"
	"plimsoll/internal/probe/programs"
)

// lockdown is where the kernel says what it keeps even root from.
const lockdown = "/sys/kernel/security/lockdown"

// Explain says what can be done about an error of Open; "" if nothing comes to mind.
func Explain(err error) string {
	// Not there: the kernel has no lockdown, or securityfs is not mounted.
	mode, _ := os.ReadFile(lockdown)
	missing, _ := capability.Missing(capability.BPF, capability.Perfmon) // not known: none is named
	return explain(err, string(mode), missing)
}

// explain is Explain with the text of the file lockdown, in which the mode in force is in brackets, and the
// capabilities for eBPF that this process lacks.
func explain(err error, mode string, missing capability.List) string {
	var refused *ebpf.VerifierError
	switch {
	case err == nil:
		return ""
	case strings.Contains(mode, "[confidentiality]"):
		return "kernel lockdown is set to confidentiality, which keeps programs from reading the scheduler"
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) && !errors.As(err, &refused):
		return notPermitted(err, missing)
	case errors.As(err, &refused):
		return "the kernel refused a program; it may lack CONFIG_CFS_BANDWIDTH, or be newer than this version knows"
	case errors.Is(err, ErrRealtime):
		return "Linux 6.12 mends it (8b62645b09f8); until then throttles are polled for"
	case errors.Is(err, fs.ErrNotExist):
		return "the kernel has no type information (/sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF)"
	case errors.Is(err, ebpf.ErrNotSupported):
		return "the kernel is too old for it (5.10 is the oldest that is tested)"
	}
	return ""
}

// notPermitted is explain of a refusal that is no fault of a program's.
func notPermitted(err error, missing capability.List) string {
	switch {
	case len(missing) > 0:
		return "eBPF takes CAP_BPF and CAP_PERFMON, and this process lacks " + missing.String()
	case errors.Is(err, programs.ErrMemlock):
		return "below 5.11 the kernel counts the memory of programs against RLIMIT_MEMLOCK: give the process " +
			"CAP_SYS_RESOURCE, which may raise the limit, or start it with LimitMEMLOCK=infinity (systemd)"
	}
	return "this process has CAP_BPF and CAP_PERFMON: it is in another user namespace than the first, or seccomp " +
		"refuses bpf(2)"
}
