package top

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/golden"
	"plimsoll/internal/report"
	"plimsoll/internal/view"
)

// TestMerge: the same path on two nodes is two rows, and the sentence is about the worst of all.
func TestMerge(t *testing.T) {
	one, two := sample(), sample()
	two.Node, two.Sentence, two.Mode, two.Mark.Node.State = "worker-2", "it is worse here.", report.Held, "overload"
	two.Rows[0].Lost = ptr(9 * time.Second)
	v, nodes := Merge([]view.View{one, two})
	if len(v.Rows) != 8 || len(nodes) != 8 || nodes["worker-2:/lab/free"] != "worker-2" ||
		nodes["worker-1:/lab/free"] != "worker-1" {
		t.Errorf("%d rows, on %v", len(v.Rows), nodes)
	}
	if v.Sentence != "worker-2: it is worse here." || v.Node != "2 nodes" || v.Mark.Node.Capacity != 16 ||
		v.Mark.Node.State != "overload" || v.Mark.Changed != 6 || len(v.Problems) != 3 {
		t.Errorf("%q, %+v, %q", v.Sentence, v.Mark, v.Problems)
	}
	frame := New(80, 24).On(nodes).Seen(v).Render()
	checkFrame(t, "merged", frame, 80, 24)
	golden.File(t, "nodes-80x24.txt", frame+"\n")
	rows := strings.Split(frame[strings.Index(frame, "NAME"):], "\n")
	if !strings.Contains(rows[1], "worker-2") || !strings.HasPrefix(rows[1], ">shop") {
		t.Errorf("the worst is not first:\n%s", frame)
	}
	for _, c := range []struct{ one, two, want string }{{"idle", "cooling", "cooling"},
		{"overload", "unknown", "overload"}, {"unknown", "idle", "unknown"}, {"cooling", "idle", "cooling"}} {
		one.Mark.Node.State, two.Mark.Node.State = c.one, c.two
		if v, _ := Merge([]view.View{one, two}); v.Mark.Node.State != c.want {
			t.Errorf("%s and %s is %s", c.one, c.two, v.Mark.Node.State)
		}
	}
	if v, _ := Merge(nil); v.Sentence != "No container is managed on any node." {
		t.Errorf("of nothing: %q", v.Sentence)
	}
}
