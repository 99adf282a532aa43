package workload

import (
	"testing"

	"plimsoll/internal/cpu"
)

// TestEqual changes one thing at a time.
func TestEqual(t *testing.T) {
	pod := func(change func(*Pod)) Pod {
		declared := &Declared{Bandwidth: cpu.Bandwidth{Quota: 1, Period: 2}, Source: "systemd"}
		p := Pod{ID: ID{Path: "/p", Inode: 1}, Name: "p", Request: 1, Declared: declared,
			Containers: []Container{{ID: ID{Path: "/p/c", Inode: 2}, Name: "c", Declared: declared}}}
		change(&p)
		return p
	}
	same := func(*Pod) {}
	for name, change := range map[string]func(*Pod){
		"inode":                 func(p *Pod) { p.Inode++ },
		"name":                  func(p *Pod) { p.Name = "" },
		"request":               func(p *Pod) { p.Request++ },
		"limit":                 func(p *Pod) { p.Declared.Bandwidth.Quota++ },
		"no limit":              func(p *Pod) { p.Declared = nil },
		"a limit for all":       func(p *Pod) { p.Own = true },
		"of a user":             func(p *Pod) { p.Delegated = true },
		"a container's name":    func(p *Pod) { p.Containers[0].Name = "" },
		"a container's limit":   func(p *Pod) { p.Containers[0].Declared = &Declared{} },
		"a container's class":   func(p *Pod) { p.Containers[0].Class = ClassBE },
		"a container's policy":  func(p *Pod) { p.Containers[0].Strategy.Policy = "auto" },
		"one container more":    func(p *Pod) { p.Containers = append(p.Containers, p.Containers[0]) },
		"no container any more": func(p *Pod) { p.Containers = nil },
	} {
		if pod(same).Equal(pod(change)) {
			t.Errorf("%s: taken for the same", name)
		}
	}
	if !pod(same).Equal(pod(same)) {
		t.Error("the same pod is taken for another")
	}
}

func TestSame(t *testing.T) {
	one, other := []Pod{{Name: "a"}}, []Pod{{Name: "a"}}
	if !Same(one, one) || Same(one, other) || Same(one, nil) || !Same(nil, []Pod{}) {
		t.Error("a copy is taken for the same, or the same for a copy")
	}
}
