package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/workload"
)

// TestOrderOfCPUs: no child has at any time a CPU that its parent has not, and partitions end first and begin last.
// Identities are written while they are switched on.
func TestOrderOfCPUs(t *testing.T) {
	cpus := func(path string, knob Knob, from, to Value) Change {
		return Change{Cgroup: workload.ID{Path: path}, Knob: knob, From: from, To: to}
	}
	changes := []Change{
		cpus("/down/a", CPUs, "0-3", "0-1"),
		cpus("/down", CPUs, "0-3", "0-1"),
		cpus("/up/a", CPUs, "0", "0-2"),
		cpus("/up", CPUs, "0", "0-2"),
		cpus("/free", CPUs, "2", ""),
		cpus("/bind", CPUs, "", "2"),
		cpus("/", SubtreeControl, "0", "1"),
		cpus("/old", SubtreeControl, "1", "0"),
		cpus("/x", Partition, "member", "root"),
		cpus("/y", Partition, "root", "member"),
		cpus("/x", Exclusive, "", "3"),
		cpus("/y", Exclusive, "2", ""),
		cpus("/pod/x", Exclusive, "", "3"),
		cpus("/pod/y", Exclusive, "2", ""),
		cpus("/", IdentitySysctl, "1", "0"),
		cpus("/a", Identity, "0", "2"),
		cpus("/", IdentitySysctl, "0", "1"),
	}
	Order(changes)
	var got []string
	for _, c := range changes {
		got = append(got, c.Cgroup.Path+" "+string(c.Knob)+" "+string(c.To))
	}
	want := []string{
		"/y partition member",
		"/pod/y exclusive ", "/y exclusive ",
		"/ handed 1",
		"/free cpus ", "/up cpus 0-2", "/up/a cpus 0-2",
		"/down/a cpus 0-1", "/bind cpus 2", "/down cpus 0-1",
		"/x exclusive 3", "/pod/x exclusive 3",
		"/x partition root",
		"/old handed 0",
		"/ gate 1", "/a identity 2", "/ gate 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
