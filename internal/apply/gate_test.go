package apply

import (
	"fmt"
	"io/fs"
	"path"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
	"plimsoll/internal/workload"
)

// identities is a fake of a kernel with Group Identity, as it is recorded: it refuses an identity while that is
// switched off. Its files are those of the groups and the switch in one.
type identities map[string]string

const switchFile = "sched_group_identity_enabled"

func (f identities) ReadFile(name string) ([]byte, error) {
	if text, ok := f[name]; ok {
		return []byte(text + "\n"), nil
	}
	return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

func (f identities) WriteFile(name string, data []byte) error {
	_, there := f[name]
	switch {
	case !there:
		return fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	case path.Base(name) == "cpu.bvt_warp_ns" && f[switchFile] == "0":
		return fmt.Errorf("%s: %w", name, syscall.EINVAL)
	}
	f[name] = string(data)
	return nil
}

func (f identities) Dirs(string) ([]string, error)     { return nil, nil }
func (f identities) Inode(name string) (uint64, error) { return uint64(len(name)), nil }

// TestGate: Group Identity is switched on before the first identity is written, and off after the last one is put back,
// by the agent and after a crash.
func TestGate(t *testing.T) {
	k := identities{"cpu/cpu.shares": "1024", "cpu/web/cpu.bvt_warp_ns": "0", "cpu/batch/cpu.bvt_warp_ns": "0",
		switchFile: "0"}
	before := fmt.Sprint(k)
	tree, err := cgroup.Detect(k)
	if err != nil {
		t.Fatal(err)
	}
	tree.WithSysctls(k)
	change := func(group string, knob plan.Knob, from, to plan.Value, restore bool) plan.Change {
		inode, _ := tree.Inode(group)
		return plan.Change{Cgroup: workload.ID{Path: group, Inode: inode}, Knob: knob, From: from, To: to,
			Restore: restore}
	}
	clock, disk := sim.New(v1), journal.NewMemory()
	for _, crash := range []bool{false, true} {
		j, err := journal.OpenDisk(disk, "boot", clock.Now)
		if err != nil {
			t.Fatal(err)
		}
		w := New(tree, j, clock.Now)
		results := w.Do([]plan.Change{change("/web", plan.Identity, "0", "2", false),
			change("/batch", plan.Identity, "0", "-1", false),
			change("/", plan.IdentitySysctl, "0", "1", false)})
		want := identities{"cpu/cpu.shares": "1024", "cpu/web/cpu.bvt_warp_ns": "2", "cpu/batch/cpu.bvt_warp_ns": "-1",
			switchFile: "1"}
		if diff := cmp.Diff(want, k); diff != "" {
			t.Fatalf("-want +got\n%s%+v", diff, results)
		}
		if crash {
			again, err := journal.OpenDisk(disk, "boot", clock.Now)
			if err != nil {
				t.Fatal(err)
			}
			results = New(tree, again, clock.Now).Restore(nil, false)
		} else {
			results = w.Do([]plan.Change{change("/", plan.IdentitySysctl, "1", "0", true),
				change("/web", plan.Identity, "2", "0", true),
				change("/batch", plan.Identity, "-1", "0", true)})
		}
		if after := fmt.Sprint(k); after != before {
			t.Errorf("crash: %v: %s is left of %s: %+v", crash, after, before, results)
		}
	}
}
