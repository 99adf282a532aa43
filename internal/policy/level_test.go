package policy

import (
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// The grades of the tests.
func online() strategy.CPUQOS  { return strategy.CPUQOS{Enable: true, GroupIdentity: 2} }
func offline() strategy.CPUQOS { return strategy.CPUQOS{Enable: true, GroupIdentity: -1} }

// forest makes the tree of containers; the groups in others hold something else, too.
func forest(containers map[string]strategy.CPUQOS, others ...string) *TreeNode {
	root := &TreeNode{ID: workload.ID{Path: "/"}}
	at := map[string]*TreeNode{"/": root}
	var seat func(group string) *TreeNode
	seat = func(group string) *TreeNode {
		if at[group] == nil {
			at[group] = &TreeNode{ID: workload.ID{Path: group}}
			above := seat(path.Dir(group))
			above.Children = append(above.Children, at[group])
		}
		return at[group]
	}
	for group, qos := range containers {
		seat(group).QOS = qos
	}
	for _, group := range others {
		seat(group).Others = true
	}
	return root
}

func valuesOf(list []plan.Intent) map[string]string {
	got := map[string]string{}
	for _, s := range list {
		got[s.Path+" "+string(s.Knob)] = string(s.Value)
	}
	return got
}

func TestLevelsOfPriority(t *testing.T) {
	machine := Machine{Idle: true, LeastWeight: 2}
	neutral := strategy.CPUQOS{}
	for name, c := range map[string]struct {
		tree     *TreeNode
		idle     map[string]string
		weight   map[string]string
		identity map[string]string
		exposed  []string
	}{
		"plain groups beside each other": {
			tree:     forest(map[string]strategy.CPUQOS{"/lab/web": online(), "/lab/batch": offline()}),
			idle:     map[string]string{"/lab/batch idle": "1"},
			weight:   map[string]string{"/lab/batch weight": "2"},
			identity: map[string]string{"/lab/batch identity": "-1", "/lab/web identity": "2"},
		},
		"the level is where they are siblings, not the leaf": {
			tree: forest(map[string]strategy.CPUQOS{"/web/a": online(), "/batch/deep/x": offline(),
				"/batch/deep/y": offline()}),
			idle:     map[string]string{"/batch idle": "1"},
			weight:   map[string]string{"/batch weight": "2"},
			identity: map[string]string{"/batch identity": "-1", "/web identity": "2"},
		},
		"the kubelet writes the weight of its QoS groups: what is below is idle": {
			tree: forest(map[string]strategy.CPUQOS{"/kubepods/burstable/pod1/c": online(),
				"/kubepods/pod2/c":            online(),
				"/kubepods/besteffort/pod3/c": offline(), "/kubepods/besteffort/pod4/c": offline()}),
			idle: map[string]string{"/kubepods/besteffort weight": "2", "/kubepods/besteffort/pod3 idle": "1",
				"/kubepods/besteffort/pod4 idle": "1"},
			weight: map[string]string{"/kubepods/besteffort weight": "2"},
			identity: map[string]string{"/kubepods/besteffort identity": "-1", "/kubepods/burstable identity": "2",
				"/kubepods/pod2 identity": "2"},
		},
		"systemd's names": {
			tree: forest(map[string]strategy.CPUQOS{"/kubepods.slice/kubepods-pod1.slice/c": online(),
				"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod2.slice/c": offline()}),
			idle: map[string]string{"/kubepods.slice/kubepods-besteffort.slice weight": "2",
				"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod2.slice idle": "1"},
			weight: map[string]string{"/kubepods.slice/kubepods-besteffort.slice weight": "2"},
			identity: map[string]string{"/kubepods.slice/kubepods-besteffort.slice identity": "-1",
				"/kubepods.slice/kubepods-pod1.slice identity": "2"},
		},
		"the group of all pods is no level, even when all are offline": {
			tree:     forest(map[string]strategy.CPUQOS{"/kubepods/besteffort/pod3/c": offline()}),
			idle:     map[string]string{"/kubepods/besteffort weight": "2", "/kubepods/besteffort/pod3 idle": "1"},
			weight:   map[string]string{"/kubepods/besteffort weight": "2"},
			identity: map[string]string{"/kubepods/besteffort identity": "-1"},
		},
		"a neutral pod among offline ones keeps its place": {
			tree: forest(map[string]strategy.CPUQOS{"/kubepods/besteffort/pod3/c": offline(),
				"/kubepods/besteffort/pod4/c": neutral}),
			idle:     map[string]string{"/kubepods/besteffort/pod3 idle": "1"},
			weight:   map[string]string{"/kubepods/besteffort/pod3 weight": "2"},
			identity: map[string]string{"/kubepods/besteffort/pod3 identity": "-1"},
		},
		"somebody unknown in the group keeps his place": {
			tree:     forest(map[string]strategy.CPUQOS{"/system.slice/batch.service": offline()}, "/system.slice"),
			idle:     map[string]string{"/system.slice/batch.service idle": "1"},
			weight:   map[string]string{"/system.slice/batch.service weight": "2"},
			identity: map[string]string{"/system.slice/batch.service identity": "-1"},
		},
		"an offline pod among online ones is exposed to those elsewhere": {
			tree: forest(map[string]strategy.CPUQOS{"/kubepods/burstable/pod1/c": online(),
				"/kubepods/burstable/pod2/c": offline(), "/kubepods/pod3/c": online()}),
			idle:   map[string]string{"/kubepods/burstable/pod2 weight": "2"},
			weight: map[string]string{"/kubepods/burstable/pod2 weight": "2"},
			identity: map[string]string{"/kubepods/burstable/pod1 identity": "2",
				"/kubepods/burstable/pod2 identity": "-1", "/kubepods/pod3 identity": "2"},
			exposed: []string{"/kubepods/burstable/pod2"},
		},
		"an offline pod that systemd makes way for": {
			tree: forest(map[string]strategy.CPUQOS{"/kubepods.slice/kubepods-pod1.slice/c": online(),
				"/kubepods.slice/kubepods-pod2.slice/c": offline()}),
			idle:   map[string]string{"/kubepods.slice/kubepods-pod2.slice idle": "1"},
			weight: map[string]string{"/kubepods.slice/kubepods-pod2.slice weight": "2"},
			identity: map[string]string{"/kubepods.slice/kubepods-pod1.slice identity": "2",
				"/kubepods.slice/kubepods-pod2.slice identity": "-1"},
		},
		"offline pods that can be resized, among themselves": {
			tree: forest(map[string]strategy.CPUQOS{"/root/kubepods/burstable/pod1/c": offline(),
				"/root/kubepods/pod2/c": offline(), "/root/kubepods/pod3/c": online()}),
			idle:   map[string]string{"/root/kubepods/burstable weight": "2", "/root/kubepods/pod2 weight": "2"},
			weight: map[string]string{"/root/kubepods/burstable weight": "2", "/root/kubepods/pod2 weight": "2"},
			identity: map[string]string{"/root/kubepods/burstable identity": "-1", "/root/kubepods/pod2 identity": "-1",
				"/root/kubepods/pod3 identity": "2"},
		},
		"one that is idle, whatever its identity": {
			tree: forest(map[string]strategy.CPUQOS{"/lab/web": online(),
				"/lab/batch": {Enable: true, GroupIdentity: 2, SchedIdle: 1}}),
			idle:     map[string]string{"/lab/batch idle": "1"},
			weight:   map[string]string{"/lab/batch weight": "2"},
			identity: map[string]string{"/lab/batch identity": "-2", "/lab/web identity": "2"},
		},
		"who expels, and who does not": {
			tree: forest(map[string]strategy.CPUQOS{"/lab/web": {Enable: true, GroupIdentity: 2,
				CoreExpeller: true}, "/lab/api": online()}),
			idle:     map[string]string{},
			weight:   map[string]string{},
			identity: map[string]string{"/lab/api identity": "2", "/lab/web identity": "2"},
		},
		"nothing is enabled": {
			tree: forest(map[string]strategy.CPUQOS{"/lab/web": {GroupIdentity: 2}, "/lab/batch": {GroupIdentity: -1}}),
			idle: map[string]string{}, weight: map[string]string{}, identity: map[string]string{},
		},
	} {
		levels := Levels(c.tree)
		for mechanism, want := range map[strategy.Mechanism]map[string]string{strategy.MechanismIdle: c.idle,
			strategy.MechanismWeight: c.weight, strategy.MechanismGroupIdentity: c.identity} {
			if diff := cmp.Diff(want, valuesOf(Colocate(mechanism, 0, levels, machine))); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, mechanism, diff)
			}
		}
		if diff := cmp.Diff(c.exposed, Exposed(c.tree, levels)); diff != "" {
			t.Errorf("%s: exposed (-want +got):\n%s", name, diff)
		}
	}
}

func TestChoose(t *testing.T) {
	all := Machine{Idle: true, Identity: true, SchedExt: true}
	for _, c := range []struct {
		asked strategy.Mechanism
		m     Machine
		want  strategy.Mechanism
	}{
		{"", all, strategy.MechanismNone},
		{strategy.MechanismNone, all, strategy.MechanismNone},
		{strategy.MechanismAuto, all, strategy.MechanismGroupIdentity},
		{strategy.MechanismAuto, Machine{Idle: true, SchedExt: true}, strategy.MechanismIdle},
		{strategy.MechanismAuto, Machine{SchedExt: true}, strategy.MechanismWeight},
		{strategy.MechanismSchedExt, all, strategy.MechanismSchedExt},
		{strategy.MechanismSchedExt, Machine{Idle: true}, strategy.MechanismIdle},
		{strategy.MechanismWeight, all, strategy.MechanismWeight},
		{strategy.MechanismIdle, Machine{}, strategy.MechanismWeight},
		{strategy.MechanismGroupIdentity, Machine{Idle: true}, strategy.MechanismIdle},
	} {
		if got, why := Choose(c.asked, c.m); got != c.want || why == "" {
			t.Errorf("asked for %q on %+v: %s (%s), want %s", c.asked, c.m, got, why, c.want)
		}
	}
}

// TestGateOfIdentity: the machine's switch of Group Identity is on while somebody has one, and is no sign that anybody
// yields.
func TestGateOfIdentity(t *testing.T) {
	root, levels := workload.ID{Path: "/",
		Inode: 1}, Levels(forest(map[string]strategy.CPUQOS{"/lab/web": online(), "/lab/batch": offline()}))
	for name, c := range map[string]struct {
		mechanism strategy.Mechanism
		m         Machine
		levels    []Level
		want      string
	}{
		"used": {strategy.MechanismGroupIdentity, Machine{Identity: true, IdentitySysctl: root},
			levels, "/ 1"},
		"there is no switch": {strategy.MechanismGroupIdentity, Machine{Identity: true}, levels, ""},
		"nobody has an identity": {strategy.MechanismGroupIdentity, Machine{Identity: true, IdentitySysctl: root}, nil,
			""},
		"another mechanism": {strategy.MechanismIdle, Machine{Identity: true, Idle: true, IdentitySysctl: root},
			levels, ""},
	} {
		intents := Colocate(c.mechanism, 0, c.levels, c.m)
		got := ""
		for _, in := range intents {
			if in.Knob == plan.IdentitySysctl {
				got = in.Path + " " + string(in.Value)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if InForce(intents, func(plan.Key) bool { return true }, nil)[root.Path] {
			t.Errorf("%s: the root is said to stand back", name)
		}
	}
}

// A scheduler of our own has idle underneath, so that offline work stays deprioritized when it is unloaded.
func TestSchedExtHasIdleUnderneath(t *testing.T) {
	levels := Levels(forest(map[string]strategy.CPUQOS{"/lab/web": online(), "/lab/batch": offline()}))
	for _, c := range []struct {
		idle bool
		want plan.Knob
	}{{true, plan.Idle}, {false, plan.Weight}} {
		got := Colocate(strategy.MechanismSchedExt, 0, levels, Machine{Idle: c.idle})
		if len(got) != 1 || got[0].Knob != c.want {
			t.Errorf("idle %v: %v, want %s", c.idle, got, c.want)
		}
	}
}
