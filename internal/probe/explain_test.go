package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

func TestExplain(t *testing.T) {
	const integrity, confidentiality = "none [integrity] confidentiality\n", "none integrity [confidentiality]\n"
	refused := &ebpf.VerifierError{Cause: unix.EINVAL, Log: []string{"unknown func"}}
	for _, c := range []struct {
		err  error
		mode string
		want string
	}{
		{nil, confidentiality, ""},
		{unix.EPERM, "", "CAP_BPF"},
		{fmt.Errorf("probe: load programs: %w", unix.EPERM), integrity, "CAP_BPF"},
		{fmt.Errorf("load: %w", &ebpf.VerifierError{Cause: unix.EPERM}), "", "CAP_BPF"},
		{fmt.Errorf("load: %w", refused), integrity, "refused"},
		{fmt.Errorf("load: %w", refused), confidentiality, "lockdown"},
		{&ebpf.VerifierError{Cause: unix.EACCES}, "", "refused"},
		{&fs.PathError{Op: "open", Path: "/sys/kernel/btf/vmlinux", Err: unix.ENOENT}, "", "type information"},
		{fmt.Errorf("map: %w", ebpf.ErrNotSupported), "", "too old"},
		{errors.New("something else"), integrity, ""},
	} {
		if got := explain(c.err, c.mode); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%v, lockdown %q: %q, want %q", c.err, c.mode, got, c.want)
		}
	}
}
