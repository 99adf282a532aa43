package report

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// trick clears a screen, colours it by the shorter spelling of an escape, reorders a line, forges another one and a
// page, and would be a format. It has the length of a long name.
func trick() string {
	return "default/\x1b[2J\u009b31m\u202e%d%!n(MISSING)\x00\x7f\r\n\tforged: yes\u2028<script>alert(1)</script>" +
		strings.Repeat("x", 253)
}

// named sets every text of a value, but not words that are the program's own.
func named(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(text)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			named(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				named(v.Field(i), text)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			named(v.Index(i), text)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if v.Type().Elem() == reflect.TypeFor[string]() {
				v.SetMapIndex(key, reflect.ValueOf(text))
			}
		}
	}
}

// outputs are all texts for people, with the same name for everything.
func outputs(t *testing.T, name string) map[string]string {
	t.Helper()
	status, half, one := sample(), 0.5, 1
	status.Problems = []string{"", ""}
	status.Kubernetes.Rejected = append(status.Kubernetes.Rejected, Rejected{Hint: "x"})
	status.Kubernetes.Fault, status.HeldReason, status.Mode, status.HeldSince, status.Waits.Problem =
		"x", "x", Held, &t0, "x"
	reported := Of(sample())
	change := plan.Change{Cgroup: workload.ID{Path: "/a"}, Knob: plan.Quota, From: "1ms", To: "2ms", Why: "x"}
	planned := NewPlan([]plan.Change{change}, "")
	planned.Names = map[string]string{"/a": ""}
	results := NewResults([]plan.Result{{Change: change, Outcome: plan.Refused, Err: "x"}})
	diagnosed := diagnosis()
	recorded := Recording{Containers: []Recorded{{Limit: &half, Demand: &half}}, Warnings: []string{""}}
	advice := Advice{MostPods: &one, Sure: &half, Count: 2, Kinds: []AdvisedKind{{Name: "", Limit: 1}},
		Conditions: []string{""}}
	sweep := Sweep{Points: []Point{{Result: Simulation{Containers: []SimulatedContainer{{}}}}},
		Conditions: []string{""}}
	h := HistoryContainer{Minutes: []HistoryMinute{{}}}
	past := History{Containers: []HistoryContainer{h}, Warnings: []string{""}}
	minutely := History{Containers: []HistoryContainer{h}, Minutely: true}
	replayed := Replay{Containers: []Replayed{{}}, Neighbours: &ReplayNeighbours{}, Warnings: []string{""},
		Conditions: []string{""}}
	receipts := ReceiptList{Containers: []ContainerReceipt{{Receipt: Receipt{Harm: true}}}}
	silent := NewCluster([]Answer[Status]{{Error: "x"}})
	out := map[string]string{}
	for what, v := range map[string]interface {
		Text(io.Writer) error
	}{"status": &status, "report": &reported, "plan": &planned, "results": &results, "diagnosis": &diagnosed,
		"recording": &recorded,
		"advice":    &advice, "sweep": &sweep, "cluster": &silent,
		"history": &past, "minutes": &minutely, "replay": &replayed, "receipts": &receipts} {
		named(reflect.ValueOf(v).Elem(), name)
		var text, data bytes.Buffer
		if err := v.Text(&text); err != nil {
			t.Fatal(what, err)
		}
		out[what] = text.String()
		if err := WriteJSON(&data, v); err != nil {
			t.Fatal(what, err)
		}
		out[what+" as JSON"] = data.String()
	}
	out["metrics"] = exposition(t, status)
	return out
}

func exposition(t *testing.T, s Status) string {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(NewCollector(func() (Status, error) { return s, nil }, Full))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestHostileNames: whatever texts a status and the other outputs have, they print, none of them begins a line, and no
// text is a format. Long lines are broken at spaces, and names in tables lose their middle.
func TestHostileNames(t *testing.T) {
	honest := outputs(t, "honest")
	for what, text := range outputs(t, trick()) {
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s has what does not print: %q", what, text[max(i-20, 0):min(i+20, len(text))])
		}
		data := strings.HasSuffix(what, " as JSON") || what == "metrics"
		if got, want := strings.Count(text, "\n"), strings.Count(honest[what], "\n"); data && got != want {
			t.Errorf("%s has %d lines, with honest names %d:\n%s", what, got, want, text)
		}
		if data && !strings.Contains(text, "%d%!n(MISSING)") || !data && !strings.Contains(text, "default/\ufffd[2J") ||
			strings.Contains(text, "%!d(") {
			t.Errorf("%s: the name is not in it as it is, or was a format:\n%s", what, text)
		}
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(strings.TrimLeft(line, " "), "forged") {
				t.Errorf("%s has a line of the name's own: %q", what, line)
			}
		}
	}
}

// TestTextKeepsItsColumns: no line of any text for people is longer than a terminal is wide, whatever names are in it,
// unless one of its words fills half of
// it.
func TestTextKeepsItsColumns(t *testing.T) {
	for _, name := range []string{"honest",
		"kube-system/a-daemon-with-a-name-of-some-length-7f9c/its-container-with-a-long-name/0123456789abcdef"} {
		for what, text := range outputs(t, name) {
			if strings.HasSuffix(what, " as JSON") || what == "metrics" {
				continue
			}
			for line := range strings.SplitSeq(text, "\n") {
				if width(line) > Columns && !slices.ContainsFunc(strings.Fields(line),
					func(word string) bool { return width(word) > Columns/2 }) {
					t.Errorf("%s: %d columns: %s", what, width(line), line)
				}
			}
		}
	}
}

// TestGoldensKeepTheirColumns: a golden is what somebody looked at.
func TestGoldensKeepTheirColumns(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	more, err2 := filepath.Glob("testdata/*/*.txt")
	if err := errors.Join(err, err2); err != nil || len(files) < 5 || len(more) < 5 {
		t.Fatal(files, more, err)
	}
	for _, file := range append(files, more...) {
		if file == "testdata/metrics.txt" {
			continue // for Prometheus
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if width(line) > Columns {
				t.Errorf("%s: %d columns: %s", file, width(line), line)
			}
		}
	}
}
