package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEachGrantIsNeeded: each capability that the unit file and the chart grant, or say that they can, has a feature in
// needs, which TestCapabilities checks on the kernel; and needs has no other.
func TestEachGrantIsNeeded(t *testing.T) {
	names := regexp.MustCompile(
		`\b(?:CAP_)?((?:AUDIT|BLOCK|CHECKPOINT|DAC|FS|IPC|LEASE|LINUX|MAC|NET|SET|SYS|WAKE)_[A-Z_]+|` +
			`BPF|CHOWN|FOWNER|FSETID|KILL|MKNOD|PERFMON|SETFCAP|SETGID|SETPCAP|SETUID|SYSLOG)\b`)
	const unit = "systemd/plimsoll.service"
	var granted []string
	for _, in := range []struct{ file, part string }{
		{unit, `(?m)^CapabilityBoundingSet=(.*)$`},
		{"helm/plimsoll/templates/daemonset.yaml", `\$add = (?:list|append \$add) (".*?)}}`},
		{"helm/plimsoll/templates/uninstall.yaml", `add: \[.*\(list (".*?)\)`},
		{"helm/plimsoll/values.yaml", `(?s)Capabilities beside those of events(.*?)extraCapabilities:`},
	} {
		text, err := os.ReadFile("../../deploy/" + in.file)
		if err != nil {
			t.Fatal(err)
		}
		if in.file == unit && !bytes.Contains(text, []byte("\nLimitMEMLOCK=infinity\n")) {
			t.Errorf("%s: without LimitMEMLOCK=infinity CAP_SYS_RESOURCE is needed below 5.11", in.file)
		}
		parts := regexp.MustCompile(in.part).FindAllSubmatch(text, -1)
		if len(parts) == 0 {
			t.Errorf("%s: no capabilities are found", in.file)
		}
		for _, p := range parts {
			for _, name := range names.FindAllStringSubmatch(string(p[1]), -1) {
				granted = append(granted, "CAP_"+name[1])
			}
		}
	}
	var needed []string
	for _, n := range needs() {
		needed = append(needed, n.capability.String())
	}
	sorted := func(list []string) []string { slices.Sort(list); return slices.Compact(list) }
	if diff := cmp.Diff(sorted(needed), sorted(granted)); diff != "" {
		t.Errorf("needed (-), granted (+):\n%s", diff)
	}
}
