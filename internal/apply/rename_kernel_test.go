package apply

import (
	"os"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/plan"
)

// TestKernelRenamed: on v1 what is renamed keeps our values, and is put back under its new name, be it noticed by a write
// or by a restore. On v2 nothing can be renamed.
func TestKernelRenamed(t *testing.T) {
	p := newRealPod(t)
	w, j := p.writer(t.TempDir())
	c := p.pod.Child("c") // the name that comes
	c.Remove()
	before := p.files()
	for _, written := range []bool{false, true} {
		p.wantOutcomes(w.Do([]plan.Change{p.change(p.pod, plan.Quota, "200ms"), p.change(p.a, plan.Quota, "150ms")}), plan.Applied, plan.Applied)
		lower := p.change(p.a, plan.Quota, "120ms")
		err := os.Rename(p.a.File(""), c.File(""))
		if p.tree.Version() == cgroup.V2 {
			if err == nil {
				t.Fatal("v2 renames groups")
			}
			return
		}
		p.must(err)
		if written {
			p.wantOutcomes(w.Do([]plan.Change{lower}), plan.Gone)
		}
		p.wantOutcomes(w.Restore(nil, false), plan.Applied, plan.Applied)
		p.must(os.Rename(c.File(""), p.a.File("")))
		p.wantFiles("put back", before)
		if left := j.Entries(); len(left) != 0 {
			t.Errorf("the journal holds %v", left)
		}
	}
}
