package report

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"testing"

	"plimsoll/internal/plan"
)

// TestJSONIsDocumented: every field of what the commands write stands in docs/REFERENCE.md.
func TestJSONIsDocumented(t *testing.T) {
	operations, err1 := os.ReadFile("../../docs/REFERENCE.md")
	config, err2 := os.ReadFile("../../docs/CONFIG.md") // of the strategy
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	code := words(string(operations) + string(config))
	one, half := 1, 0.5
	result := plan.Result{Change: plan.Change{Restore: true, Refill: true}, InForce: "0s", Err: "no"}
	for _, v := range []any{
		sample(), Status{HeldReason: "why", HeldSince: &t0}, Of(sample()), NewPlan([]plan.Change{result.Change}), NewResults([]plan.Result{result}),
		Recording{Containers: []Recorded{{Limit: &half, Demand: &half}}},
		Sweep{Points: []Point{{Result: Simulation{Containers: []SimulatedContainer{{}}}}}},
		Advice{MostPods: &one, Sure: &half, Kinds: []AdvisedKind{{}}},
		History{Containers: []HistoryContainer{{ID: "1", Namespace: "a", Pod: "b", Container: "c", Minutes: []HistoryMinute{{}}}}, Gaps: []Gap{{}}},
		Replay{Containers: []Replayed{{Model: &ReplayModel{}}}, Neighbours: &ReplayNeighbours{Worst: "a"}, Gaps: []Gap{{}}},
		ReceiptsOf(sample()), diagnosis(),
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
			if !code[name] {
				t.Errorf("%T: docs/REFERENCE.md does not name %s", v, name)
			}
		}
	}
}

// words are those of all pieces of code in a document: a name that only happens to stand in a sentence describes nothing.
func words(text string) map[string]bool {
	all := map[string]bool{}
	for _, code := range regexp.MustCompile("(?s)```.*?```|`[^`]+`").FindAllString(text, -1) {
		for _, word := range regexp.MustCompile(`[\w-]+`).FindAllString(code, -1) {
			all[word] = true
		}
	}
	return all
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
