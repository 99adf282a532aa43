package probe

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// lockdown is where the kernel says what it keeps even root from.
const lockdown = "/sys/kernel/security/lockdown"

// Explain says what can be done about an error of Open; "" if nothing comes to mind.
func Explain(err error) string {
	mode, _ := os.ReadFile(lockdown) // not there: the kernel has no lockdown, or securityfs is not mounted
	return explain(err, string(mode))
}

// explain is Explain with the text of the file lockdown, in which the mode in force stands in brackets.
func explain(err error, mode string) string {
	var refused *ebpf.VerifierError
	switch {
	case err == nil:
		return ""
	case strings.Contains(mode, "[confidentiality]"):
		return "kernel lockdown is set to confidentiality, which keeps programs from reading the scheduler"
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) && !errors.As(err, &refused):
		return "eBPF is not permitted: run as root or with CAP_BPF and CAP_PERFMON, in the initial user namespace, " +
			"and where seccomp allows bpf(2)"
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
