package nri

import "testing"

func TestGroupOf(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"/kubepods/burstable/pod1/c1", "/kubepods/burstable/pod1/c1"},
		{"/kubepods/pod1/", "/kubepods/pod1"},
		{"kubepods-burstable-pod1_2.slice:cri-containerd:c1",
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-c1.scope"},
		{"kubepods-pod1.slice", "/kubepods.slice/kubepods-pod1.slice"},
		{"system.slice:cri-containerd:c1", "/system.slice/cri-containerd-c1.scope"},
		{"", ""},
		{"c1", ""},
		{"a.slice:b", ""},
		{"a.slice:b:", ""},
	} {
		if got := groupOf(c.name); got != c.want {
			t.Errorf("%q: %q, want %q", c.name, got, c.want)
		}
	}
}
