package arch

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writerUses are the uses of the writer in internal/agent that change files or the journal, or hand the writer on: in a
// turn, Do once; and to put back what is left behind, at a hold and at the end. A second way to write would be a second
// place that has to learn what became of it.
func writerUses() map[string]int {
	return map[string]int{
		"turn.go Claim":            1,
		"turn.go Do":               1,
		"turn.go itself":           1, // Protect: Shield and Unshield
		"restores.go RestoreAgain": 1,
		"restores.go TryRestore":   1,
		"restores.go Restore":      2,
		"restores.go Unshield":     1,
		"handover.go Unshield":     1,
		"handover.go itself":       1, // a dry run has none
		"group.go Adopt":           1,
		"group.go Forget":          1,
		"group.go Rebase":          1,
		"neighbours.go Adopt":      1,
		"neighbours.go Forget":     1,
	}
}

func TestWriterUses(t *testing.T) {
	got := map[string]int{}
	for _, p := range packages(t) {
		if p.dir != "internal/agent" {
			continue
		}
		for _, s := range p.code() {
			s.countWriterUses(got, strings.TrimPrefix(s.path, p.dir+"/"))
		}
	}
	if diff := cmp.Diff(writerUses(), got); diff != "" {
		t.Errorf("uses of the writer: -want +got\n%s", diff)
	}
}

// TestWriterRule: whatever is done with a writer counts, but for what changes nothing.
func TestWriterRule(t *testing.T) {
	for text, want := range map[string]map[string]int{
		"a.Writer.SetHold(true); _ = a.Writer.Steps(x)":            {},
		"a.Writer.RestoreAgain(); a.Options.Writer.RestoreAgain()": {"x.go RestoreAgain": 2},
		"do := a.Writer.Do; do(x)":                                 {"x.go Do": 1},
		"w := a.Writer; w.Do(x)":                                   {"x.go itself": 1},
		"protect(a.Writer)":                                        {"x.go itself": 1},
	} {
		got := map[string]int{}
		parse(t, "x.go", "package x\nfunc f() { "+text+" }").countWriterUses(got, "x.go")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", text, diff)
		}
	}
}

// countWriterUses counts the uses by file and method; "itself" is a writer without a method.
func (s source) countWriterUses(in map[string]int, file string) {
	called := map[ast.Node]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		use, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if use.Sel.Name == "Writer" && !called[use] {
			in[file+" itself"]++
		}
		writer, ok := use.X.(*ast.SelectorExpr)
		if !ok || writer.Sel.Name != "Writer" {
			return true
		}
		called[writer] = true
		switch use.Sel.Name {
		case "SetHold", "Steps":
		default:
			in[file+" "+use.Sel.Name]++
		}
		return true
	})
}
