package view

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/report"
)

// TestJSONIsDocumented: every field of a view and of a detail stands in docs/REFERENCE.md.
func TestJSONIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Time{}
	waited := &Waited{Causes: []WaitedFor{{}}, Neighbours: []report.Neighbour{{}}}
	for _, v := range []any{
		View{HeldReason: "x", Mark: Mark{Features: []Feature{{}}}, Rows: []Row{{Pod: "x", Paused: &now, Problem: "x", Requests: &report.RequestWindow{}}}, Recording: &Recording{},
			Recorded: &now, Colocation: &report.Colocation{}, Reserve: &report.Reserve{}, Waits: &report.Waits{}},
		Detail{Unmeasured: "x", Demand: &Demand{}, Waited: waited, Advice: []Alternative{{}}},
	} {
		data, err := json.Marshal(v)
		var tree any
		if err == nil {
			err = json.Unmarshal(data, &tree)
		}
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		each(tree, func(name string) {
			if n++; !regexp.MustCompile("`[^`\n]*\\b" + name + "\\b[^`\n]*`").Match(text) {
				t.Errorf("%T: docs/REFERENCE.md does not name %s", v, name)
			}
		})
		if n < 30 {
			t.Errorf("%T has only %d fields", v, n)
		}
	}
	for _, cause := range []Cause{OwnLimit, PodLimit, AtCap, Budget, Guard, Refused, Paused, Held, PolicyNone, RefillsOff} {
		if !strings.Contains(string(text), "`"+string(cause)+"`") {
			t.Errorf("docs/REFERENCE.md does not name the cause %s", cause)
		}
	}
}

// each calls f with the names of all objects in a value.
func each(v any, f func(string)) {
	switch x := v.(type) {
	case map[string]any:
		for name, inner := range x {
			f(name)
			each(inner, f)
		}
	case []any:
		for _, inner := range x {
			each(inner, f)
		}
	}
}
