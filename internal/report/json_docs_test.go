package report

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestModelJSONIsDocumented: every field of what record, simulate and advise write stands in docs/OPERATIONS.md.
func TestModelJSONIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	one, half := 1, 0.5
	for _, v := range []any{
		Recording{Containers: []Recorded{{Limit: &half, Demand: &half}}},
		Sweep{Points: []Point{{Result: Simulation{Containers: []SimulatedContainer{{}}}}}},
		Advice{MostPods: &one, Sure: &half, Kinds: []AdvisedKind{{}}},
		diagnosis(),
	} {
		data, err := json.Marshal(v)
		var tree any
		if err == nil {
			err = json.Unmarshal(data, &tree)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range fields(tree) {
			if !strings.Contains(string(text), name) {
				t.Errorf("%T: docs/OPERATIONS.md does not name %s", v, name)
			}
		}
	}
}

// fields are the names of all objects in a value.
func fields(v any) []string {
	var list []string
	switch x := v.(type) {
	case map[string]any:
		for name, inner := range x {
			list = append(append(list, name), fields(inner)...)
		}
	case []any:
		for _, inner := range x {
			list = append(list, fields(inner)...)
		}
	}
	return list
}
