package task

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCapable(t *testing.T) {
	const status = "Name:\tplimsoll\nCapInh:\t0000000000000000\nCapPrm:\t000001ffffffffff\nCapEff:\tX\nCapBnd:\t000001ffffffffff\n"
	for _, c := range []struct {
		set  string
		want bool
		bad  string
	}{
		{"000001ffffffffff", true, ""},
		{"0000000000080000", true, ""},
		{"000000c000800000", false, ""}, // what the chart gives: BPF, PERFMON, SYS_NICE
		{"000001fffff7ffff", false, ""},
		{"all", false, "CapEff"},
		{"", false, "CapEff"},
	} {
		got, err := capable(strings.Replace(status, "X", c.set, 1), unix.CAP_SYS_PTRACE)
		if got != c.want || (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%q: %v, %v", c.set, got, err)
		}
	}
	if _, err := capable("Name:\tplimsoll\n", unix.CAP_SYS_PTRACE); err == nil {
		t.Error("no line, and no error")
	}
}
