package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"sort"
	"strings"
	"testing"
)

func TestImports(t *testing.T) {
	table := rules()
	for _, p := range packages(t) {
		if len(p.code()) == 0 {
			continue // tests only: they may import what they test
		}
		r, ok := table[p.dir]
		if !ok {
			t.Errorf("%s: not in the import table (internal/arch/table_test.go): a new package needs one "+
				"deliberate line", p.dir)
			continue
		}
		delete(table, p.dir)
		for _, s := range p.code() {
			for _, complaint := range checkImports(s, r) {
				t.Errorf("%s: %s", s.path, complaint)
			}
		}
	}
	for dir := range table {
		t.Errorf("%s: in the import table, but there is no such package", dir)
	}
}

// checkImports lists what a file imports or calls against its package's rule.
func checkImports(s source, r rule) []string {
	var bad []string
	names := s.imports()
	for _, path := range names {
		ours, isOurs := strings.CutPrefix(path, module+"/")
		switch {
		case isOurs && r.free:
		case isOurs && !slices.Contains(r.imports, strings.TrimPrefix(ours, "internal/")):
			bad = append(bad, fmt.Sprintf("may not import %s", path))
		case slices.Contains(r.except, path):
		case r.pure && slices.Contains(impure(), path):
			bad = append(bad, fmt.Sprintf("is pure and may not import %s", path))
		case strings.HasPrefix(path, "k8s.io/") && !r.kube:
			bad = append(bad, fmt.Sprintf("may not import %s: Kubernetes is an adapter", path))
		}
	}
	if r.pure {
		bad = append(bad, checkClock(s, names)...)
	}
	sort.Strings(bad)
	return bad
}

// TestShippedCodeNeedsNoLab: what is shipped, with its tests, stands without the experiments.
func TestShippedCodeNeedsNoLab(t *testing.T) {
	for _, p := range packages(t) {
		for _, s := range p.files {
			for _, complaint := range checkLab(s) {
				t.Errorf("%s: %s", s.path, complaint)
			}
		}
	}
}

// checkLab lists the experiments that a file of cmd or internal imports.
func checkLab(s source) []string {
	var bad []string
	if !strings.HasPrefix(s.path, "cmd/") && !strings.HasPrefix(s.path, "internal/") {
		return nil
	}
	for _, path := range s.imports() {
		if strings.HasPrefix(path, module+"/lab/") {
			bad = append(bad, fmt.Sprintf("may not import %s: experiments are not shipped", path))
		}
	}
	return bad
}

// checkClock lists the uses of the clock and of the global dice.
func checkClock(s source, names map[string]string) []string {
	var bad []string
	banned := clock()
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if ok && x.Obj == nil && slices.Contains(banned[names[x.Name]], sel.Sel.Name) {
			bad = append(bad, fmt.Sprintf("line %d: is pure and may not use %s.%s: make it an argument", s.line(n),
				x.Name, sel.Sel.Name))
		}
		return true
	})
	return bad
}

func TestFolderNames(t *testing.T) {
	for _, p := range packages(t) {
		for _, part := range strings.Split(p.dir, "/") {
			if slices.Contains(rooms(), part) {
				t.Errorf("%s: the name %s says nothing of what is inside", p.dir, part)
			}
		}
	}
}

// Every package says in one place what it is.
func TestPackageDocs(t *testing.T) {
	for _, p := range packages(t) {
		var docs []string
		for _, s := range p.code() {
			if doc := s.file.Doc.Text(); doc != "" {
				docs = append(docs, doc)
			}
		}
		if len(p.code()) == 0 {
			continue
		}
		name := p.code()[0].file.Name.Name
		switch {
		case len(docs) != 1:
			t.Errorf("%s: %d package docs, want 1", p.dir, len(docs))
		case name == "main" && !strings.HasPrefix(docs[0], "Command "):
			t.Errorf("%s: the doc must begin with \"Command\": %.40q", p.dir, docs[0])
		case name != "main" && !strings.HasPrefix(docs[0], "Package "+name+" "):
			t.Errorf("%s: the doc must begin with \"Package %s\": %.40q", p.dir, name, docs[0])
		}
	}
}
