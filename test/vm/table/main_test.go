package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A column that ran is compared, one that did not run is kept.
func TestTable(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "KERNELS.md")
	say := func(machine, burst string) {
		text := `{"features": [{"name": "burst", "state": "` + burst + `"}, {"name": "inotify", "state": "yes"}],
			"priority": [{"mechanism": "idle", "usable": true}]}`
		if err := os.WriteFile(filepath.Join(dir, machine+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(file, dir, true); err == nil {
		t.Error("no machine ran, and nothing is wrong")
	}
	say("5.10:v1", "no")
	say("5.4:v1", "no")
	if err := run(file, dir, true); err == nil {
		t.Error("no file, and nothing differs")
	}
	if err := run(file, dir, false); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "5.4:v1.json")); err != nil {
		t.Fatal(err)
	}
	say("7.3:v2", "yes")
	if err := run(file, dir, false); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const want = "| feature | 5.4 v1 | 5.10 v1 | 7.3 v2 |\n|---|---|---|---|\n| burst | no | no | yes |\n| " +
		"colocation-idle | yes | yes | yes |\n"
	if !strings.HasSuffix(string(text), want) {
		t.Errorf("%s\nwant %s", text, want)
	}
	if err := run(file, dir, true); err != nil {
		t.Error(err)
	}
	say("7.3:v2", "no")
	if err := run(file, dir, true); err == nil || !strings.Contains(err.Error(), "make kernels") {
		t.Errorf("a kernel says otherwise: %v", err)
	}
}
