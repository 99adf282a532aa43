package report

import (
	"bytes"
	"strings"
	"testing"
)

func sampleReserve() *Reserve {
	return &Reserve{Policy: "auto", Shared: "4-7", CPUs: 4, MinShared: 1, Kept: "7", Unbound: 3, Changed: 12,
		Shield: &Shield{"/plimsoll-shield", 40},
		Exclusive: []ExclusiveCPUs{{Cgroup: "/web", Request: 2.5, CPUs: "0-2", N: 3, MayUse: "0-2", Unlimited: true},
			{Cgroup: "/a", Request: 0.5, CPUs: "3", N: 1, MayUse: "3-7", Packed: true},
			{Cgroup: "/b", Request: 0.5, CPUs: "3", N: 1, MayUse: "3", Packed: true}},
		Refused: []NoCPUs{{Cgroup: "/big", Why: "it needs 9 CPUs"}}, Pinned: []BoundCPUs{{Cgroup: "/old", CPUs: "5"}}}
}

func TestReserveInWords(t *testing.T) {
	var p page
	sampleReserve().lines(&p)
	want := `reserve (auto): 3 with exclusive CPUs, 1 refused; share pool 4-7 (4 CPUs, at least 1)
  /web: 0-2 (request 2.5, no quota)
  /a: 3 (request 0.5, packed with others, may use 3-7)
  /b: 3 (request 0.5, packed with others)
  /old: bound to 5 by another program, left alone
  /plimsoll-shield: 40 tasks of the root are kept in it
  3 processes and kernel threads are in no group that can be bound, and may run on any CPU that is
    in no partition
`
	var b strings.Builder
	if err := p.writeTo(&b); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
	for _, m := range reserveMetrics() {
		if v := m.value(*sampleReserve()); strings.Contains(m.desc.String(), "exclusive_cpus") && v != 4 {
			t.Errorf("%v exclusive CPUs: the packed ones share one", v)
		}
	}
}

// TestReserveForAll: who sees many containers with exclusive CPUs sees that the node asked for them.
func TestReserveForAll(t *testing.T) {
	for all, want := range map[bool]string{true: "reserve (auto, for all containers): 0 with exclusive CPUs",
		false: "reserve (auto): 0 with exclusive CPUs"} {
		var out bytes.Buffer
		if err := (Status{Mode: Active, Reserve: &Reserve{Policy: "auto", All: all}}).Text(&out); err != nil ||
			!strings.Contains(out.String(), want) {
			t.Errorf("%v: %v, %q is not in %s", all, err, want, out.String())
		}
	}
}
