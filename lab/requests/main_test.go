package main

import (
	"slices"
	"strings"
	"testing"

	"plimsoll/lab/frame"
)

// TestAims: a figure is held to 10 % and 0.1 ms, whichever of p50 and p99 is further off; requests beside each other
// are to be withheld, and those of one at a time are not.
func TestAims(t *testing.T) {
	good := row{Server: "good", Client: quantiles{100, 1, 10}, Kernel: quantiles{100, 0.81, 10.5}}
	late := row{Server: "late", Client: quantiles{100, 1, 10}, Kernel: quantiles{100, 1, 8.8}}
	large := row{Server: "large", Client: quantiles{100, 1, 50}, Kernel: quantiles{100, 1, 5}, Large: true}
	held := row{Server: "held", Client: good.Client, Kernel: good.Kernel, Withheld: true}
	several := row{Server: "several", Several: true, Withheld: true}
	told := row{Server: "told", Several: true}
	for _, c := range []struct {
		row row
		met bool
	}{{good, true}, {late, false}, {large, true}, {held, false}, {several, true}, {told, false}} {
		aims := (&result{Rows: []row{c.row}}).Aims()
		if len(aims) != 1 || aims[0].Met() != c.met {
			t.Errorf("%s: %+v", c.row.Server, aims)
		}
	}
}

// TestGuest: the machine has Apache's modules, and measures what was asked for.
func TestGuest(t *testing.T) {
	s := usual()
	if err := frame.Parse("requests", s, []string{"-rounds", "1"}); err != nil {
		t.Fatal(err)
	}
	if vm, _ := s.Guest(); vm != nil {
		t.Errorf("without -vm: %+v", vm)
	}
	if err := frame.Parse("requests", s, []string{"-vm", "6.18", "-seconds", "5", "-only", "nginx 400 B"}); err != nil {
		t.Fatal(err)
	}
	vm, script := s.Guest()
	if vm.Kernel != "6.18" || vm.Cgroup != "v2" || vm.CPUs != 3 ||
		!slices.Contains(vm.Programs, "/usr/lib/apache2/modules/mod_deflate.so") {
		t.Errorf("%+v", vm)
	}
	if !strings.Contains(script, "-emulated -seconds 5 -rounds 1 -seed 1 -only 'nginx 400 B'") {
		t.Error(script)
	}
}

// TestOnEmulatedCPUs: what is compressed takes longer there.
func TestOnEmulatedCPUs(t *testing.T) {
	for _, c := range []struct {
		t    target
		rate float64
	}{{target{rate: 60, computes: true}, 15}, {target{rate: 1500}, 750}} {
		if got := c.t.onEmulatedCPUs(); got.rate != c.rate || !got.emulated {
			t.Errorf("%+v", got)
		}
	}
}
