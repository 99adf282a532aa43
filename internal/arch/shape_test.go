package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The ratchet: these only ever go down.
const (
	maxFunction = 70
	maxFile     = 400
	maxLine     = 120 // columns
	minFile     = 40  // lines, unless there is a reason: see short
)

func TestLength(t *testing.T) {
	for _, p := range packages(t) {
		for _, s := range p.files {
			for _, complaint := range checkLength(s) {
				t.Errorf("%s: %s", s.path, complaint)
			}
		}
	}
}

func TestWidth(t *testing.T) {
	for _, p := range packages(t) {
		for _, s := range p.files {
			for _, complaint := range checkWidth(s) {
				t.Errorf("%s: %s", s.path, complaint)
			}
		}
	}
}

// checkWidth checks the width of each line. Lines of a raw string are as wide as their text, and instructions to the
// compiler and to go generate cannot be broken.
func checkWidth(s source) []string {
	raw := rawLines(s)
	var bad []string
	n := 0
	for line := range strings.Lines(s.text) {
		n++
		width := utf8.RuneCountInString(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    "))
		if width > maxLine && !raw[n] && !strings.HasPrefix(line, "//go:") {
			bad = append(bad, fmt.Sprintf("line %d: %d columns, at most %d", n, width, maxLine))
		}
	}
	return bad
}

// rawLines are those that have a part of a raw string.
func rawLines(s source) map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(text.Value, "`") {
			for at := s.fset.Position(text.Pos()).Line; at <= s.fset.Position(text.End()).Line; at++ {
				lines[at] = true
			}
		}
		return true
	})
	return lines
}

// TestShortFiles: what is short has a reason to be a file of its own.
func TestShortFiles(t *testing.T) {
	for _, p := range packages(t) {
		for _, complaint := range short(p) {
			t.Error(complaint)
		}
	}
}

// short lists the short files that belong into another one. A file may be short that documents its package, is the only
// one of its kind in it, is tested in a file of the same name or tests one, or stands apart for the go command: by a
// build constraint, or as a list of kernel tests.
func short(p pkg) []string {
	kind := map[bool][]string{} // by whether they are tests
	for _, s := range p.files {
		if !strings.Contains(s.text, "DO NOT EDIT") {
			kind[s.test] = append(kind[s.test], filepath.Base(s.path))
		}
	}
	var bad []string
	for _, s := range p.files {
		base := filepath.Base(s.path)
		stem := strings.TrimSuffix(strings.TrimSuffix(base, ".go"), "_test")
		partner := stem + "_test.go"
		if s.test {
			partner = stem + ".go"
		}
		lines := strings.Count(s.text, "\n")
		reason := base == "doc.go" || stem == "export" || strings.HasSuffix(stem, "_kernel") ||
			len(kind[s.test]) == 1 || slices.Contains(kind[!s.test], partner) || strings.Contains(s.text, "//go:build ")
		if lines < minFile && !reason {
			bad = append(bad, fmt.Sprintf("%s: %d lines: it belongs into another file", s.path, lines))
		}
	}
	return bad
}

// longC lists the programs in C that are longer than a file may be, and how long they may be: each only ever shrinks.
func longC() map[string]int {
	return map[string]int{
		"internal/probe/runq/bpf/runq.bpf.c": 960,
	}
}

func TestLengthOfC(t *testing.T) {
	long := longC()
	for _, p := range files(t, ".c", ".h") {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			t.Fatal(err)
		}
		most := max(maxFile, long[filepath.ToSlash(name)])
		delete(long, filepath.ToSlash(name))
		if n := strings.Count(string(text), "\n"); n > most {
			t.Errorf("%s: %d lines, at most %d", name, n, most)
		}
	}
	for name := range long {
		t.Errorf("%s: may be long, but there is no such file", name)
	}
}

// checkLength counts lines. In tests the lines of a composite literal are not counted: a table is data.
func checkLength(s source) []string {
	var bad []string
	n := strings.Count(s.text, "\n")
	if s.test {
		n -= s.tables(s.file)
	}
	if n > maxFile {
		bad = append(bad, fmt.Sprintf("%d lines, at most %d", n, maxFile))
	}
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		n := s.span(f)
		if s.test {
			n -= s.tables(f)
		}
		if n > maxFunction {
			bad = append(bad, fmt.Sprintf("%s has %d lines, at most %d", f.Name.Name, n, maxFunction))
		}
	}
	return bad
}

// span is the number of lines of a node.
func (s source) span(n ast.Node) int {
	return s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
}

// tables is the number of lines inside the outermost composite literals.
func (s source) tables(f ast.Node) int {
	total := 0
	ast.Inspect(f, func(n ast.Node) bool {
		if c, ok := n.(*ast.CompositeLit); ok {
			total += s.span(c) - 1
			return false
		}
		return true
	})
	return total
}

func TestNoInit(t *testing.T) {
	for _, p := range packages(t) {
		for _, s := range p.code() {
			for _, complaint := range checkInit(s) {
				t.Errorf("%s: %s", s.path, complaint)
			}
		}
	}
}

func checkInit(s source) []string {
	var bad []string
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			bad = append(bad, fmt.Sprintf("line %d: func init", s.line(f)))
		}
	}
	return bad
}

// A variable of a package is an error, a regular expression or a table, and nobody assigns to it.
func TestNoPackageState(t *testing.T) {
	for _, p := range packages(t) {
		if !strings.HasPrefix(p.dir, "internal/") {
			continue
		}
		for _, complaint := range checkState(p.code()) {
			t.Error(complaint)
		}
	}
}

func checkState(files []source) []string {
	var bad []string
	vars := map[string]*ast.ValueSpec{}
	for _, s := range files {
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for _, name := range v.Names {
					vars[name.Name] = v
				}
				if !constant(g, v) {
					bad = append(bad, fmt.Sprintf("%s:%d: package variable %s is neither an error, a regular "+
						"expression nor a table", s.path, s.line(v), v.Names[0]))
				}
			}
		}
	}
	for _, s := range files {
		for _, name := range s.assigned(vars) {
			bad = append(bad, fmt.Sprintf("%s: assigns to the package variable %s", s.path, name))
		}
	}
	return bad
}

// constant says whether a variable can be meant as a constant that Go cannot spell.
func constant(g *ast.GenDecl, v *ast.ValueSpec) bool {
	if v.Names[0].Name == "_" {
		return true // var _ Interface = Type{}
	}
	if len(v.Values) == 0 { // filled in by the compiler
		return g.Doc != nil && slices.ContainsFunc(g.Doc.List,
			func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
	}
	for _, value := range v.Values {
		switch x := value.(type) {
		case *ast.CompositeLit, *ast.BasicLit:
		case *ast.CallExpr:
			sel, ok := x.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"errors.New", "fmt.Errorf", "regexp.MustCompile"},
				fmt.Sprint(sel.X)+"."+sel.Sel.Name) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// assigned lists the package variables that a file writes to, or takes the address of.
func (s source) assigned(vars map[string]*ast.ValueSpec) []string {
	var names []string
	note := func(e ast.Expr) {
		if id := stem(e); id != nil && id.Name != "_" && vars[id.Name] != nil &&
			(id.Obj == nil || id.Obj.Decl == vars[id.Name]) {
			names = append(names, id.Name)
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt:
			for _, e := range x.Lhs {
				note(e)
			}
		case *ast.IncDecStmt:
			note(x.X)
		case *ast.UnaryExpr:
			if x.Op == token.AND {
				note(x.X)
			}
		case *ast.CallExpr:
			if f, ok := x.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") && len(x.Args) > 0 {
				note(x.Args[0])
			}
		}
		return true
	})
	return names
}

// stem is the variable that an expression such as v.f[i] reaches into.
func stem(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}
