package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/strategy"
)

// Every bad input is refused with the line, the field, what is wrong and, where a person can act, what to do.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		// the text as a whole
		{"strategy:\n\tpolicy: auto\n",
			`c.yaml:2: not YAML: found character '\t' that cannot start any token (indent with spaces, not with tabs)`},
		{"strategy: {policy: auto\n", "c.yaml:1: not YAML: could not find flow mapping end token '}'"},
		{"strategy:\n  policy: auto\n cpuBurstPercent: 5\n",
			"c.yaml:3: not YAML: value is not allowed in this context"},
		{"- a\n", "c.yaml:1: must be a mapping (name: value), not a list"},
		{"policy\n", `c.yaml:1: must be a mapping (name: value), not "policy"`},
		{"strategy:\n---\nstrategy:\n", "c.yaml:3: a second document (remove the line ---)"},
		{"# a\n# \xff\n", "c.yaml:2: not UTF-8 text"},
		{"# " + strings.Repeat("a", 999) + "\n", "c.yaml:1: a line longer than 1000 bytes"},
		{"a: 1\n" + strings.Repeat("[", 101), "c.yaml:2: more than 100 open brackets"},
		{strings.Repeat("#\n", 128<<10) + "#", "c.yaml:1: longer than 262144 bytes"},

		// fields
		{"strategie:\n  policy: auto\n", "c.yaml:1: strategie: unknown field (did you mean strategy?)"},
		{"policy: auto\n", "c.yaml:1: policy: unknown field"},
		{"strategy:\n  policy: auto\n  cpuBurstPercnt: 5\n",
			"c.yaml:3: strategy.cpuBurstPercnt: unknown field (did you mean cpuBurstPercent?)"},
		{"strategy: {CPUBURSTPERCENT: 5}\n",
			"c.yaml:1: strategy.CPUBURSTPERCENT: unknown field (did you mean cpuBurstPercent?)"},
		{"strategy: {polc: auto}\n", "c.yaml:1: strategy.polc: unknown field (did you mean policy?)"},
		{"strategy: {request: 5}\n", "c.yaml:1: strategy.request: unknown field"},
		{"strategy:\n  policy: auto\n  policy: none\n", "c.yaml:3: strategy.policy: given twice, first in line 2"},
		{"include: [/a]\nstrategy:\ninclude: [/b]\n", "c.yaml:3: include: given twice, first in line 1"},
		{"1: 2\n", "c.yaml:1: 1: not a field name"},
		{"strategy:\n  <<: {policy: auto}\n", "c.yaml:2: strategy.<<: not a field name"},

		// values
		{"strategy: auto\n", `c.yaml:1: strategy: must be a mapping (name: value), not "auto"`},
		{"strategy:\n  policy: Auto\n",
			`c.yaml:2: strategy.policy: "Auto" is not one of none, cpuBurstOnly, cfsQuotaBurstOnly, auto (did you mean auto?)`},
		{"strategy:\n  policy: burst\n",
			`c.yaml:2: strategy.policy: "burst" is not one of none, cpuBurstOnly, cfsQuotaBurstOnly, auto`},
		{"strategy:\n  policy: cpuBurst\n",
			`c.yaml:2: strategy.policy: "cpuBurst" is not one of none, cpuBurstOnly, cfsQuotaBurstOnly, auto`},
		{"strategy:\n  policy: true\n", "c.yaml:2: strategy.policy: must be text, not true"},
		{"strategy:\n  policy: 1\n", "c.yaml:2: strategy.policy: must be text, not 1"},
		{"strategy:\n  policy: [auto]\n", "c.yaml:2: strategy.policy: must be text, not a list"},
		{"strategy:\n  policy: |\n    auto\n", "c.yaml:2: strategy.policy: must be text, not a block of text"},
		{"strategy:\n  policy:\n", "c.yaml:2: strategy.policy: has no value (leave the field out to inherit it)"},
		{"strategy:\n  policy: ~\n", "c.yaml:2: strategy.policy: has no value (leave the field out to inherit it)"},
		{"strategy:\n  policy: !!str auto\n", "c.yaml:2: strategy.policy: must be text, not a tag (remove the !!str)"},
		{"strategy:\n  policy: &p auto\n",
			"c.yaml:2: strategy.policy: must be text, not an anchor or alias (write the value out; a glob that " +
				"begins with * needs a / before it)"},
		{"strategy:\n  cpuBurstPercent: \"1000\"\n",
			`c.yaml:2: strategy.cpuBurstPercent: must be a whole number, not "1000" (remove the quotes)`},
		{"strategy:\n  cpuBurstPercent: 50%\n",
			`c.yaml:2: strategy.cpuBurstPercent: must be a whole number, not "50%" (the field is in percent: write 50)`},
		{"strategy:\n  cpuBurstPercent: 99.5\n",
			"c.yaml:2: strategy.cpuBurstPercent: must be a whole number, not 99.5"},
		{"strategy:\n  cpuBurstPercent: 1e3\n",
			"c.yaml:2: strategy.cpuBurstPercent: must be a whole number, not \"1e3\""},
		{"strategy:\n  cpuBurstPercent: .inf\n",
			"c.yaml:2: strategy.cpuBurstPercent: must be a whole number, not .inf"},
		{"strategy:\n  cpuBurstPercent: .nan\n",
			"c.yaml:2: strategy.cpuBurstPercent: must be a whole number, not .nan"},
		{"strategy:\n  cpuBurstPercent: {a: 1}\n",
			"c.yaml:2: strategy.cpuBurstPercent: must be a whole number, not a mapping"},
		{"strategy:\n  cpuBurstPercent: 010\n",
			"c.yaml:2: strategy.cpuBurstPercent: 010 is not a whole number (decimal digits only)"},
		{"strategy:\n  cpuBurstPercent: 0x10\n",
			"c.yaml:2: strategy.cpuBurstPercent: 0x10 is not a whole number (decimal digits only)"},
		{"strategy:\n  cpuBurstPercent: 1_000\n",
			"c.yaml:2: strategy.cpuBurstPercent: 1_000 is not a whole number (decimal digits only)"},
		{"strategy:\n  cpuBurstPercent: -5\n", "c.yaml:2: strategy.cpuBurstPercent: -5 is outside 0..10000"},
		{"strategy:\n  policy: auto\n\n  # up\n  cfsQuotaBurstPercent: 99\n",
			"c.yaml:5: strategy.cfsQuotaBurstPercent: 99 is outside 100..10000"},
		{"strategy:\n  cfsQuotaBurstPeriodSeconds: -2\n",
			"c.yaml:2: strategy.cfsQuotaBurstPeriodSeconds: -2 is outside -1..31536000"},
		{"strategy:\n  startupSeconds: 601\n", "c.yaml:2: strategy.startupSeconds: 601 is outside 0..600"},
		{"strategy:\n  startupBurstPercent: 99\n", "c.yaml:2: strategy.startupBurstPercent: 99 is outside 100..10000"},
		{"strategy:\n  sharePoolThresholdPercent: 101\n",
			"c.yaml:2: strategy.sharePoolThresholdPercent: 101 is outside 0..100"},

		// overrides and include
		{"overrides: {cgroup: /a}\n", "c.yaml:1: overrides: must be a list (- value), not a mapping"},
		{"overrides:\n  - /lab/*\n", `c.yaml:2: overrides[0]: must be a mapping (name: value), not "/lab/*"`},
		{"overrides:\n  - cgroup: /a\n  - policy: auto\n",
			`c.yaml:3: overrides[1].cgroup: missing (such as cgroup: "/lab/*")`},
		{"strategy:\n  loadLinePercent: 40\n",
			"c.yaml:2: strategy.loadLinePercent: 40 is neither 0 nor within 50..99.999"},
		{"strategy:\n  loadLinePercent: .nan\n", "c.yaml:2: strategy.loadLinePercent: must be a number, not .nan"},
		{"strategy:\n  loadLinePercent: high\n", "c.yaml:2: strategy.loadLinePercent: must be a number, not \"high\""},
		{"overrides:\n  - cgroup: /a\n    loadLinePercent: 99\n",
			"c.yaml:3: overrides[0].loadLinePercent: applies to the whole node (move it to the section strategy)"},
		{"overrides:\n  - cgroup: /a\n    sharePoolThresholdPercent: 40\n",
			"c.yaml:3: overrides[0].sharePoolThresholdPercent: applies to the whole node (move it to the " +
				"section strategy)"},
		{"overrides:\n  - cgroup: /a\n    policy: none\n  - cgroup: /b\n    cpuBurstPercent: -1\n",
			"c.yaml:5: overrides[1].cpuBurstPercent: -1 is outside 0..10000"},
		{"overrides:\n  - cgroup: 5\n", "c.yaml:2: overrides[0].cgroup: must be text, not 5"},
		{"overrides:\n  - cgroup: lab/*\n",
			`c.yaml:2: overrides[0].cgroup: "lab/*" does not begin with / (write "/lab/*")`},
		{"overrides:\n  - cgroup: \"\"\n", "c.yaml:2: overrides[0].cgroup: is empty (such as /lab/*)"},
		{"overrides:\n  - cgroup: *lab\n",
			"c.yaml:2: overrides[0].cgroup: must be text, not an anchor or alias (write the value out; a glob that " +
				"begins with * needs a / before it)"},
		{"overrides:\n  - cgroup: /\n",
			"c.yaml:2: overrides[0].cgroup: the root has no limit (/* names the groups below it)"},
		{"overrides:\n  - cgroup: /lab/\n",
			`c.yaml:2: overrides[0].cgroup: "/lab/" is not a plain path (write "/lab")`},
		{"overrides:\n  - cgroup: /a/../b\n",
			`c.yaml:2: overrides[0].cgroup: "/a/../b" is not a plain path (write "/b")`},
		{"overrides:\n  - cgroup: /lab/**\n",
			`c.yaml:2: overrides[0].cgroup: "/lab/**": ** has no meaning, and * does not cross / (write one entry a level, such as /lab/* and /lab/*/*)`},
		{"overrides:\n  - cgroup: /lab/[a\n",
			`c.yaml:2: overrides[0].cgroup: "/lab/[a" is not a glob (close each [ with ], and write a plain [ as \[)`},
		{"include:\n  - /system.slice/a\\x2db.service\n",
			`c.yaml:2: include[0]: /system.slice/a\x2db.service: in a glob \x is a mere x, and systemd's names have the backslash too (write '/system.slice/a\\x2db.service', in single quotes)`},
		{"include:\n  - /sys/fs/cgroup/cpu/lab/*\n",
			`c.yaml:2: include[0]: "/sys/fs/cgroup/cpu/lab/*": the path begins below the mount of the cpu controller (write "/lab/*")`},
		{"include:\n  - /sys/fs/cgroup/lab\n",
			`c.yaml:2: include[0]: "/sys/fs/cgroup/lab": the path begins below the mount of the cpu controller (write "/lab")`},
		{"include: /a\n", `c.yaml:1: include: must be a list (- value), not "/a"`},
		{"include: [/a, b]\n", `c.yaml:1: include[1]: "b" does not begin with / (write "/b")`},
		{"overrides:\n  - cgroup: /a\n    class: LSX\n",
			`c.yaml:3: overrides[0].class: "LSX" is not one of LSE, LSR, LS, BE, SYSTEM (did you mean LSE?)`},
		{"overrides:\n  - cgroup: /a\n    class: \"\"\n",
			`c.yaml:3: overrides[0].class: "" is not one of LSE, LSR, LS, BE, SYSTEM`},
		{"overrides:\n  - cgroup: /a\n    request: -1\n",
			`c.yaml:3: overrides[0].request: "-1" is not an amount of CPU (such as 0.5 or "500m")`},
		{"overrides:\n  - cgroup: /a\n    request: 1k\n",
			`c.yaml:3: overrides[0].request: "1k" is not an amount of CPU (such as 0.5 or "500m")`},
		{"overrides:\n  - cgroup: /a\n    request: 1.2.3\n",
			`c.yaml:3: overrides[0].request: "1.2.3" is not an amount of CPU (such as 0.5 or "500m")`},
		{"overrides:\n  - cgroup: /a\n    request: m\n",
			`c.yaml:3: overrides[0].request: "m" is not an amount of CPU (such as 0.5 or "500m")`},
		{"overrides:\n  - cgroup: /a\n    request: 8193\n", "c.yaml:3: overrides[0].request: 8193 is outside 0..8192"},
		{"overrides:\n  - cgroup: /a\n    request: [1]\n",
			"c.yaml:3: overrides[0].request: must be an amount of CPU, not a list"},
		{"overrides:\n  - cgroup: /a\n    request: true\n",
			"c.yaml:3: overrides[0].request: must be an amount of CPU, not true"},
	} {
		f, err := Parse("c.yaml", []byte(c.text))
		switch {
		case err == nil:
			t.Errorf("%.80q: accepted, want %s", c.text, c.want)
		case err.Error() != c.want:
			t.Errorf("%.80q:\n got %s\nwant %s", c.text, err, c.want)
		case f != nil:
			t.Errorf("%.80q: a File beside an error", c.text)
		}
	}
}

// TestPercentSign: a value with the sign is refused, and the error says that the field is in percent already.
func TestPercentSign(t *testing.T) {
	for text, want := range map[string]string{
		"strategy: {cfsQuotaBurstPercent: 200%}":   `c.yaml:1: strategy.cfsQuotaBurstPercent: must be a whole number, not "200%" (the field is in percent: write 200)`,
		"strategy: {loadLinePercent: \"99.9 %\"}":  `c.yaml:1: strategy.loadLinePercent: must be a number, not "99.9 %" (the field is in percent: write 99.9)`,
		"strategy: {startupSeconds: 60%}":          `c.yaml:1: strategy.startupSeconds: must be a whole number, not "60%"`,
		"strategy: {cfsQuotaBurstPercent: twice%}": `c.yaml:1: strategy.cfsQuotaBurstPercent: must be a whole number, not "twice%"`,
	} {
		if _, err := Parse("c.yaml", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	_, _, bad := ParseAnnotations("Pod a/b", map[string]string{Annotation: `{"cfsQuotaBurstPercent": "200%"}`},
		strategy.Patch{})
	const want = `Pod a/b: koordinator.sh/cpuBurst: cfsQuotaBurstPercent: must be a whole number, not "200%" (the field is in percent: write 200)`
	if len(bad) != 1 || bad[0].Error() != want {
		t.Errorf("%v, want %s", bad, want)
	}
}

// TestAllErrorsAtOnce: one run lists all errors of a file, and none of a good field.
func TestAllErrorsAtOnce(t *testing.T) {
	const text = `strategy:
  policy: auot
  cpuBurstPercent: 99999
  cfsQuotaBurstPercent: 200
  sharePoolThresholdPercent: 101
  sharePoolThresholdPercent: 50
colocation:
  mechanism: idel
  slice: 1s
  kubeQOS: true
  suppress: {cpuSuppressPolicy: quota, cpuSuppressMinPercent: 101, cpuSuppressThresholdPercent: 70}
  beClass: {cpuQOS: {groupIdentity: 3, schedIdle: 1}}
  schedExt: {floorPercent: 60, watchdogSeconds: 3}
reserve: {policy: yes, minSharedCPUs: 0, shield: true}
overrides:
  - {policy: none}
  - {cgroup: lab, class: BX}
  - 7
include: [lab, /lab/*]
nosuch: 1
`
	want := []string{
		`c.yaml:2: strategy.policy: "auot" is not one of none, cpuBurstOnly, cfsQuotaBurstOnly, auto (did you mean auto?)`,
		"c.yaml:3: strategy.cpuBurstPercent: 99999 is outside 0..10000",
		"c.yaml:5: strategy.sharePoolThresholdPercent: 101 is outside 0..100",
		"c.yaml:6: strategy.sharePoolThresholdPercent: given twice, first in line 5",
		`c.yaml:8: colocation.mechanism: "idel" is not one of auto, groupIdentity, idle, weight, slice, coreSched, schedExt, none (did you mean idle?)`,
		"c.yaml:9: colocation.slice: 1s is outside 100µs..100ms",
		`c.yaml:11: colocation.suppress.cpuSuppressPolicy: "quota" is not one of cfsQuota, cpuset`,
		"c.yaml:11: colocation.suppress.cpuSuppressMinPercent: 101 is outside 0..100",
		"c.yaml:12: colocation.beClass.cpuQOS.groupIdentity: 3 is outside -2..2",
		"c.yaml:13: colocation.schedExt.floorPercent: 60 is outside 0.1..50",
		"c.yaml:13: colocation.schedExt.watchdogSeconds: 3 is outside 4..30",
		`c.yaml:14: reserve.policy: "yes" is not one of none, cpuset, auto`,
		"c.yaml:14: reserve.minSharedCPUs: leaves everybody else less than a CPU (1 is the least)",
		`c.yaml:16: overrides[0].cgroup: missing (such as cgroup: "/lab/*")`,
		`c.yaml:17: overrides[1].cgroup: "lab" does not begin with / (write "/lab")`,
		`c.yaml:17: overrides[1].class: "BX" is not one of LSE, LSR, LS, BE, SYSTEM (did you mean BE?)`,
		"c.yaml:18: overrides[2]: must be a mapping (name: value), not 7",
		`c.yaml:19: include[0]: "lab" does not begin with / (write "/lab")`,
		"c.yaml:20: nosuch: unknown field",
	}
	_, err := Parse("c.yaml", []byte(text))
	if err == nil {
		t.Fatal("accepted")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var errs Errors
	_, err = Parse("c.yaml", []byte("overrides:\n"+strings.Repeat("  - {}\n", 1000)))
	if !errors.As(err, &errs) || len(errs) != mostErrors+1 || errs[mostErrors].Msg != "950 more errors from here on" ||
		errs[mostErrors].Line != 52 {
		t.Errorf("of 1000 faults %d are listed, the last is %v", len(errs), errs[len(errs)-1])
	}
}
