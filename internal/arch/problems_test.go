package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// TestProblemsStandInOneTable: the text of a problem is a constant of internal/report/problem.go, of which the list in
// docs/REFERENCE.md is made. A text that is written where the problem is found would not be in that list.
func TestProblemsStandInOneTable(t *testing.T) {
	for _, p := range packages(t) {
		for _, s := range p.files {
			if s.test || strings.HasPrefix(s.path, "lab/") {
				continue
			}
			for _, complaint := range checkProblems(s) {
				t.Errorf("%s: %s", s.path, complaint)
			}
		}
	}
}

func TestProblemRule(t *testing.T) {
	s := parse(t, "x.go", `package x
func (c *C) f() {
	c.Problem("key", "a text")
	c.Problem("key of it", "")
	s.Problems = append(s.Problems, "another "+why)
	c.problem = fmt.Sprintf("a third: %v", err)
	c.problem = fmt.Sprintf(report.ProblemShield, err)
}
func (c *C) Problems() []string { return []string{"a fourth"} }
`)
	if found := checkProblems(s); len(found) != 4 {
		t.Errorf("found %q, want 4", found)
	}
}

// checkProblems finds where a file makes a problem of a text of its own.
func checkProblems(s source) (bad []string) {
	verbs, words := regexp.MustCompile(`%[a-z]`), regexp.MustCompile(`[a-z].* | .*[a-z]`)
	text := func(in ast.Node) {
		ast.Inspect(in, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING &&
				words.MatchString(verbs.ReplaceAllString(lit.Value, "")) {
				bad = append(bad, fmt.Sprintf("line %d: the text of a problem: make it a constant of "+
					"internal/report/problem.go", s.line(lit)))
			}
			return true
		})
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncDecl:
			if x.Name.Name == "Problems" && x.Body != nil {
				text(x.Body)
				return false
			}
		case *ast.CallExpr:
			if lastName(x.Fun) == "Problem" && len(x.Args) == 2 {
				text(x.Args[1])
			}
		case *ast.AssignStmt:
			switch lastName(x.Lhs[0]) {
			case "Problems", "Problem", "problem":
				text(x.Rhs[0])
			}
		}
		return true
	})
	return bad
}

// lastName is that of an identifier or a selector.
func lastName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}
