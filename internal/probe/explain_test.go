package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/capability"
	"plimsoll/internal/probe/programs"
)

func TestExplain(t *testing.T) {
	const integrity, confidentiality = "none [integrity] confidentiality\n", "none integrity [confidentiality]\n"
	refused := &ebpf.VerifierError{Cause: unix.EINVAL, Log: []string{"unknown func"}}
	memlock := fmt.Errorf("load: %w; %w: %w", unix.EPERM, programs.ErrMemlock, unix.EPERM)
	for _, c := range []struct {
		err     error
		mode    string
		missing capability.List
		want    string
	}{
		{nil, confidentiality, capability.List{capability.BPF}, ""},
		{unix.EPERM, "", capability.List{capability.BPF}, "lacks CAP_BPF"},
		{unix.EPERM, "", capability.List{capability.BPF, capability.Perfmon}, "lacks CAP_BPF and CAP_PERFMON"},
		{fmt.Errorf("probe: load programs: %w", unix.EPERM), integrity, capability.List{capability.Perfmon},
			"lacks CAP_PERFMON"},
		{fmt.Errorf("load: %w", &ebpf.VerifierError{Cause: unix.EPERM}), "", nil, "seccomp"},
		{memlock, "", nil, "CAP_SYS_RESOURCE"},
		// who lacks it cannot find out whether the limit matters
		{memlock, "", capability.List{capability.BPF}, "lacks CAP_BPF"},
		{fmt.Errorf("load: %w", refused), integrity, nil, "refused"},
		{fmt.Errorf("load: %w", refused), confidentiality, nil, "lockdown"},
		{&ebpf.VerifierError{Cause: unix.EACCES}, "", nil, "refused"},
		{&fs.PathError{Op: "open", Path: "/sys/kernel/btf/vmlinux", Err: unix.ENOENT}, "", nil, "type information"},
		{fmt.Errorf("map: %w", ebpf.ErrNotSupported), "", nil, "too old"},
		{errors.New("something else"), integrity, nil, ""},
	} {
		if got := explain(c.err, c.mode, c.missing); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%v, lockdown %q: %q, want %q", c.err, c.mode, got, c.want)
		}
	}
}
