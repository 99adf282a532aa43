package arch

import (
	"go/ast"
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
