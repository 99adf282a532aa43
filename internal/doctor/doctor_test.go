package doctor

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/golden"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// TestDoctorGolden compares the text with testdata.
func TestDoctorGolden(t *testing.T) {
	for name, found := range map[string]cgroup.Features{
		"mainline-v1": mainlineV1(),
		"old-v2":      with(mainlineV1(), oldV2()...),
		"alinux":      with(mainlineV1(), cgroup.Feature{Name: cgroup.FeatureAboveQuota, State: cgroup.Yes}),
		"read-only":   with(mainlineV1(), readOnly()...),
		"nothing":     {{Name: cgroup.FeatureController, State: cgroup.No, Detail: "no cpu controller there"}},
		"polling": with(mainlineV1(), cgroup.Feature{Name: FeatureEvents, State: cgroup.No,
			Detail: "not permitted; hint: run as root"}),
		"broken-burst": with(mainlineV1(), brokenBurst()...),
		"nri-off": with(mainlineV1(), cgroup.Feature{Name: FeatureNRI, State: cgroup.No,
			Detail: "off: containerd 1.7.28 has it, but its socket is closed"}),
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := Examine("v0", "6.0-test", "/sys/fs/cgroup", found,
				Priorities(found, noTasks{})).Text(&got); err != nil {
				t.Fatal(err)
			}
			golden.File(t, name+".txt", got.String())
		})
	}
}

// TestDoctorRuntimesGolden: the section on runtimes, with containers whose bursts find no threads, and with none.
func TestDoctorRuntimesGolden(t *testing.T) {
	one := Suspect{Name: "default/web/\x1bapi", Cgroup: "/kubepods/web",
		Parallelism: report.Parallelism{Verdict: "api runs Go code on 2 threads.", Next: "set GOMAXPROCS=4"}}
	many := &Suspects{Looked: 40, Left: 3}
	for range mostSuspects + 2 {
		many.List = append(many.List, one)
	}
	for name, s := range map[string]*Suspects{"runtimes": many, "runtimes-well": {Looked: 2}} {
		e := Examine("v0", "6.0-test", "/sys/fs/cgroup", mainlineV1(), Priorities(mainlineV1(), noTasks{}))
		e.Runtimes = s
		var got bytes.Buffer
		if err := e.Text(&got); err != nil {
			t.Fatal(err)
		}
		golden.File(t, name+".txt", got.String())
	}
}

// TestDoctorTableStaysOne: an error of several lines is one cell, and those below it stay in their columns.
func TestDoctorTableStaysOne(t *testing.T) {
	found := with(mainlineV1(), cgroup.Feature{Name: FeatureEvents, State: cgroup.No,
		Detail: "probe: not permitted\nfailed to set memlock\n"},
		cgroup.Feature{Name: FeatureNRI, State: cgroup.No, Detail: "off"})
	var got bytes.Buffer
	if err := Examine("v0", "6.0-test", "/sys/fs/cgroup", found, Priorities(found, noTasks{})).Text(&got); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.String(), "  probe: not permitted; failed to set memlock\n") ||
		!strings.Contains(joined(got.String()), "late: probe: not permitted; failed to set memlock ") {
		t.Errorf("%s", got.String())
	}
	table, _, _ := strings.Cut(got.String(), "\n\nWhat")
	_, rows, _ := strings.Cut(table, "\n\n")
	at := strings.Index(rows, "SINCE")
	for _, row := range strings.Split(rows, "\n") {
		if len(row) < at || row[at-1] != ' ' || row[at] == ' ' {
			t.Errorf("not in its columns: %q", row)
		}
	}
}

// TestDoctorOfAConfiguration: the doctor judges the configuration's requests as the agent would.
func TestDoctorOfAConfiguration(t *testing.T) {
	machine := policy.Machine{Idle: true, IdleWhy: "cpu.idle is there", SchedExtWhy: "no sched_ext", LeastWeight: 2}
	asks := func(m strategy.Mechanism) strategy.Colocation {
		on := true
		return strategy.ColocationPatch{Enable: &on, Mechanism: &m}.Over(strategy.Colocation{})
	}
	for _, c := range []struct {
		asked strategy.Colocation
		want  Choice
	}{
		{asks(strategy.MechanismSchedExt), Choice{strategy.MechanismSchedExt, strategy.MechanismIdle,
			"schedExt is not usable (no sched_ext); the best here: cpu.idle is there"}},
		{asks(strategy.MechanismWeight), Choice{strategy.MechanismWeight, strategy.MechanismWeight,
			"requested: every kernel has it"}},
		{asks(strategy.MechanismNone), Choice{strategy.MechanismNone, strategy.MechanismNone, "not requested"}},
		{strategy.DefaultColocation(), Choice{strategy.MechanismAuto, strategy.MechanismNone, "no class is enabled"}},
	} {
		got := Judge(c.asked, machine)
		if diff := cmp.Diff(&c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.asked.Mechanism, diff)
		}
		e := Examine("v0", "6.0-test", "/sys/fs/cgroup", mainlineV1(), machine)
		e.Configured = got
		var text bytes.Buffer
		if err := e.Text(&text); err != nil || !strings.Contains(joined(text.String()), c.want.Why) {
			t.Errorf("%v, and no %q in\n%s", err, c.want.Why, &text)
		}
	}
}

func mainlineV1() cgroup.Features {
	return cgroup.Features{
		{Name: cgroup.FeatureVersion, State: cgroup.Yes, Detail: "v1"},
		{Name: cgroup.FeatureController, State: cgroup.Yes, Detail: "/cpu"},
		{Name: cgroup.FeatureWritable, State: cgroup.Yes},
		{Name: cgroup.FeatureBandwidth, State: cgroup.Yes, Since: "3.2"},
		{Name: cgroup.FeatureBurst, State: cgroup.Yes, Since: "5.14"},
		{Name: cgroup.FeatureAboveQuota, State: cgroup.No, Detail: "EINVAL"},
		{Name: cgroup.FeatureCounters, State: cgroup.Yes, Since: "5.16"},
		{Name: cgroup.FeatureKeepsBurst, State: cgroup.Yes},
		{Name: cgroup.FeatureRefill, State: cgroup.Yes},
		{Name: cgroup.FeatureUsage, State: cgroup.Yes},
		{Name: cgroup.FeatureEnforced, State: cgroup.Yes},
		{Name: cgroup.FeatureInotify, State: cgroup.Yes},
		{Name: cgroup.FeatureWithinNode, State: cgroup.Yes},
		{Name: FeatureEvents, State: cgroup.Yes, Since: "5.10"},
	}
}

func oldV2() []cgroup.Feature {
	return []cgroup.Feature{
		{Name: cgroup.FeatureVersion, State: cgroup.Yes, Detail: "v2"},
		{Name: cgroup.FeatureBurst, State: cgroup.No, Detail: "no cpu.max.burst", Since: "5.14"},
		{Name: cgroup.FeatureAboveQuota, State: cgroup.No, Detail: "no burst"},
		{Name: cgroup.FeatureCounters, State: cgroup.No, Since: "5.16"},
		{Name: cgroup.FeatureKeepsBurst, State: cgroup.No, Detail: "no burst"},
		{Name: cgroup.FeatureInotify, State: cgroup.No},
		{Name: cgroup.FeatureWithinNode, State: cgroup.No},
	}
}

func brokenBurst() []cgroup.Feature {
	return []cgroup.Feature{
		{Name: cgroup.FeatureVersion, State: cgroup.Yes, Detail: "v2"},
		{Name: cgroup.FeatureKeepsBurst, State: cgroup.No, Detail: "20ms became 20us"},
		{Name: cgroup.FeatureCounters, State: cgroup.No, Since: "5.16"},
		{Name: cgroup.FeatureAboveQuota, State: cgroup.Unknown},
	}
}

// readOnly is a mount on which nothing can be tried.
func readOnly() []cgroup.Feature {
	list := []cgroup.Feature{{Name: cgroup.FeatureWritable, State: cgroup.No,
		Detail: "the mount is read-only: read-only file system"}}
	for _, name := range []string{cgroup.FeatureAboveQuota, cgroup.FeatureKeepsBurst, cgroup.FeatureRefill} {
		list = append(list, cgroup.Feature{Name: name, State: cgroup.Unknown, Detail: "read-only file system"})
	}
	return list
}

func with(found cgroup.Features, changed ...cgroup.Feature) cgroup.Features {
	list := slices.Clone(found)
	for _, c := range changed {
		if i := slices.IndexFunc(list, func(f cgroup.Feature) bool { return f.Name == c.Name }); i >= 0 {
			list[i] = c
		} else {
			list = append(list, c)
		}
	}
	return list
}

func TestPrognosis(t *testing.T) {
	no := func(name string) cgroup.Features {
		return with(mainlineV1(), cgroup.Feature{Name: name, State: cgroup.No, Detail: "no " + name})
	}
	for _, tt := range []struct {
		name               string
		found              cgroup.Features
		burst, quota, auto bool
	}{
		{"all", mainlineV1(), true, true, true},
		{"no burst", no(cgroup.FeatureBurst), false, true, true},
		{"read-only", no(cgroup.FeatureWritable), false, false, false},
		{"sched_ext", no(cgroup.FeatureEnforced), false, false, false},
		{"no limits", no(cgroup.FeatureBandwidth), false, false, false},
	} {
		got := map[strategy.Policy]bool{}
		for _, p := range Examine("", "", "", tt.found, Priorities(tt.found, noTasks{})).Policies {
			got[p.Policy] = p.Works
		}
		want := map[strategy.Policy]bool{strategy.None: true, strategy.CPUBurstOnly: tt.burst,
			strategy.CFSQuotaBurstOnly: tt.quota, strategy.Auto: tt.auto}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// noTasks is a kernel that can do nothing with single tasks.
type noTasks struct{}

func (noTasks) HasSlices() (bool, string)  { return false, "no slices" }
func (noTasks) HasCookies() (bool, string) { return false, "no core scheduling" }

func joined(text string) string { return strings.Join(strings.Fields(text), " ") }
