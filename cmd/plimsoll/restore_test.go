package main

import (
	"bytes"
	"strings"
	"testing"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// TestShowRestored: all results are shown, and one that the kernel refused is an error besides.
func TestShowRestored(t *testing.T) {
	back := plan.Result{Change: plan.Change{Cgroup: workload.ID{Path: "/a"}, Knob: plan.Quota, From: "150ms", To: "50ms"}, Outcome: plan.Applied, InForce: "50ms"}
	not := back
	not.Change.Cgroup.Path, not.Outcome, not.Err = "/b", plan.Refused, "invalid argument"
	for name, c := range map[string]struct {
		results []plan.Result
		want    string // of the error
	}{
		"put back":         {[]plan.Result{back}, ""},
		"one was refused":  {[]plan.Result{not, back}, "quota of /b could not be put back to 50ms: invalid argument"},
		"nothing stood":    {nil, ""},
		"it was not there": {[]plan.Result{{Change: not.Change, Outcome: plan.Gone}}, ""},
	} {
		var out bytes.Buffer
		err := showRestored(&out, c.results, false)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		for _, r := range c.results {
			if !strings.Contains(out.String(), r.Change.Cgroup.Path) {
				t.Errorf("%s: %s is not in %q", name, r.Change.Cgroup.Path, out.String())
			}
		}
	}
}
