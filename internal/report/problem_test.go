package report

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProblemsAreDocumented: docs/REFERENCE.md has each problem, made of its text and the comment above it.
func TestProblemsAreDocumented(t *testing.T) {
	generated(t, "problems", problemTable(t))
}

func problemTable(t *testing.T) string {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "problem.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	checked, err := (&types.Config{}).Check("report", files, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("\n| problem | meaning | what to do |\n|---|---|---|\n")
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Problem") {
			return true
		}
		n++
		name := spec.Names[0].Name
		text := constant.StringVal(checked.Scope().Lookup(name).(*types.Const).Val())
		meaning, do, found := strings.Cut(strings.Join(strings.Fields(spec.Doc.Text()), " "), " Do: ")
		if !found {
			t.Errorf("%s: its comment does not say what to do", name)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", shown(text), meaning, strings.ToUpper(do[:min(1, len(do))])+do[min(1, len(do)):])
		return true
	})
	if n < 30 {
		t.Errorf("only %d problems", n)
	}
	return b.String()
}

// shown is a format as a reader of the status sees it, without the hint, which the status shows.
func shown(format string) string {
	text, _, _ := strings.Cut(format, "; hint: ")
	text, _, _ = strings.Cut(text, " (hint: ")
	if rest, ok := strings.CutPrefix(text, "%s: "); ok {
		text = "NAME: " + rest
	}
	return regexp.MustCompile(`%[sdqv]`).ReplaceAllString(text, "…")
}

// generated compares a part of docs/REFERENCE.md, or with -update writes it.
func generated(t *testing.T, part, want string) {
	t.Helper()
	const file = "../../docs/REFERENCE.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- %s: begin -->\n", part), fmt.Sprintf("<!-- %s: end -->\n", part)
	before, rest, found := strings.Cut(string(data), begin)
	have, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatalf("%s has no place for %s", file, part)
	case have == want:
	case !*update:
		t.Fatalf("%s (-documented +made):\n%s\nhint: go test ./internal/report -run %s -update", file, cmp.Diff(have, want), t.Name())
	default:
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
