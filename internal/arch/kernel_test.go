package arch

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tiers tell kernel tests from unit tests by name (test/tiers.sh): a name that both use would keep the unit test
// from ever running.
func TestKernelTestNames(t *testing.T) {
	kernel, unit := map[string]string{}, map[string]string{}
	for _, p := range packages(t) {
		for _, s := range p.files {
			names := unit
			if strings.HasSuffix(s.path, "_kernel_test.go") {
				names = kernel
			}
			for _, name := range s.tests() {
				names[name] = s.path
			}
		}
	}
	for name, path := range kernel {
		if other := unit[name]; other != "" {
			t.Errorf("%s: %s has the name of a test in %s, and would keep it from running", path, name, other)
		}
	}
}

// A test that a machine cannot run fails there, or says which one runs it: cgrouptest knows the excuses.
func TestNoBareSkip(t *testing.T) {
	for _, p := range packages(t) {
		for _, s := range p.files {
			if !strings.HasSuffix(s.path, "_kernel_test.go") && !strings.HasPrefix(s.path, "test/kube/") {
				continue
			}
			for _, complaint := range checkSkips(s) {
				t.Errorf("%s: %s", s.path, complaint)
			}
		}
	}
}

func checkSkips(s source) []string {
	var bad []string
	names := s.imports()
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); !ok || x.Obj != nil || names[x.Name] != module+"/internal/cgrouptest" {
			bad = append(bad, fmt.Sprintf("line %d: a bare %s: use cgrouptest's Need, Skip or Elsewhere", s.line(n),
				sel.Sel.Name))
		}
		return true
	})
	return bad
}

// tests lists the test functions of a file.
func (s source) tests() []string {
	var names []string
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && s.test && f.Recv == nil && f.Name.Name != "TestMain" && strings.HasPrefix(f.Name.Name, "Test") {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

// TestEachExperimentIsRun: a command of lab that no tier calls breaks unseen.
func TestEachExperimentIsRun(t *testing.T) {
	programs, err := filepath.Glob("../../lab/*/main.go")
	if err != nil || len(programs) < 15 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	var scripts string
	for _, file := range []string{"tiers.sh", "lint.sh"} {
		text, err := os.ReadFile("../../test/" + file)
		if err != nil {
			t.Fatal(err)
		}
		scripts += string(text)
	}
	for _, program := range programs {
		if name := filepath.Base(filepath.Dir(program)); !regexp.MustCompile(`go run \./lab/` + name +
			`\b`).MatchString(scripts) {
			t.Errorf("no tier runs ./lab/%s", name)
		}
	}
}
