package main

import "testing"

// TestAims: a figure is held to 10 % and 0.1 ms, whichever of p50 and p99 is further off; requests beside each other are to be
// withheld, and those of one at a time are not.
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
