package report

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"strings"
	"testing"

	"plimsoll/internal/golden"
)

// TestProblemsAreDocumented: docs/REFERENCE.md has each problem, made of its text and the comment above it.
func TestProblemsAreDocumented(t *testing.T) {
	golden.Part(t, referenceFile, "problems", problemTable(t))
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
		fmt.Fprintf(&b, "| %s | %s | %s |\n", shown(text), meaning,
			strings.ToUpper(do[:min(1, len(do))])+do[min(1, len(do)):])
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
