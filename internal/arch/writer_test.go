package arch

import (
	"fmt"
	"go/ast"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writerCalls are the places in internal/agent where the writer changes files: in a turn, once; and to put back what is
// left behind, at a hold and at the end. A second way to write would be a second place that
// has to learn what became of it.
func writerCalls() map[string]int {
	return map[string]int{
		"turn.go Do":             1,
		"restores.go TryRestore": 1,
		"restores.go Restore":    2,
		"restores.go Unshield":   1,
		"handover.go Unshield":   1,
	}
}

func TestWriterCalls(t *testing.T) {
	got := map[string]int{}
	for _, p := range packages(t) {
		if p.dir != "internal/agent" {
			continue
		}
		for _, s := range p.code() {
			s.countWriterCalls(got, p.dir)
		}
	}
	if diff := cmp.Diff(writerCalls(), got); diff != "" {
		t.Errorf("calls of the writer: -want +got\n%s", diff)
	}
}

func (s source) countWriterCalls(in map[string]int, dir string) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		writer, ok := call.X.(*ast.SelectorExpr)
		if !ok || writer.Sel.Name != "Writer" {
			return true
		}
		switch call.Sel.Name {
		case "Do", "TryRestore", "Restore", "Unshield", "Shield":
			in[fmt.Sprintf("%s %s", s.path[len(dir)+1:], call.Sel.Name)]++
		}
		return true
	})
}
