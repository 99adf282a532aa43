package apply

import (
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
	"plimsoll/internal/workload"
)

const ms = time.Millisecond

var (
	v1      = sim.Config{Version: 1, BurstFile: true}
	v2      = sim.Config{Version: 2, BurstFile: true}
	divides = sim.Config{Version: 2, BurstFile: true, DividesBurst: true}
)

// node is a simulated machine with a pod of two containers, a writer, and a disk that outlives it.
type node struct {
	t      *testing.T
	config sim.Config
	k      *sim.Kernel
	disk   *journal.Memory
	tree   *cgroup.Tree
	j      *journal.Journal
	w      *Writer
}

// limits are what the groups have before we come. The burst of /pod/b is somebody's.
var limits = []struct {
	group        string
	quota, burst time.Duration
}{
	{"/pod", 100 * ms, 0}, {"/pod/a", 50 * ms, 0}, {"/pod/b", 50 * ms, 20 * ms}, {"/free", cpu.Unlimited, 0},
}

func newNode(t *testing.T, c sim.Config) *node {
	t.Helper()
	n := &node{t: t, config: c, k: sim.New(c), disk: journal.NewMemory()}
	tree, err := cgroup.Detect(n.k)
	if err != nil {
		t.Fatal(err)
	}
	n.tree = tree
	for _, l := range limits {
		n.k.AddGroup(l.group)
		if l.quota != cpu.Unlimited {
			n.must(tree.SetQuota(l.group, l.quota))
		}
		if l.burst > 0 && c.BurstFile {
			n.must(tree.SetBurst(l.group, l.burst))
		}
	}
	n.start()
	return n
}

// start is what a new process does.
func (n *node) start() {
	n.t.Helper()
	j, err := journal.OpenDisk(n.disk, "boot", n.k.Now)
	n.must(err)
	n.j, n.w = j, New(n.tree, j, n.k.Now)
	n.w.Sleep = func(time.Duration) {}
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) id(group string) workload.ID {
	n.t.Helper()
	inode, err := n.tree.Inode(group)
	n.must(err)
	return workload.ID{Path: group, Inode: inode}
}

// change is decided upon what stands in the file now.
func (n *node) change(group string, knob plan.Knob, to plan.Value) plan.Change {
	n.t.Helper()
	return plan.Change{Cgroup: n.id(group), Knob: knob, From: n.held(group, knob), To: to, Min: "1ms", Max: "300ms",
		Why: "test"}
}

func (n *node) held(group string, knob plan.Knob) plan.Value {
	n.t.Helper()
	v, err := Read(n.tree, group, knob)
	n.must(err)
	return v
}

// do carries out one change and wants one outcome.
func (n *node) do(c plan.Change, want plan.Outcome) plan.Result {
	n.t.Helper()
	results := n.w.Do([]plan.Change{c})
	if len(results) != 1 || results[0].Outcome != want {
		n.t.Fatalf("%s of %s from %s to %s: %+v, want %s", c.Knob, c.Cgroup.Path, c.From, c.To, results, want)
	}
	return results[0]
}

func (n *node) foreign(group string, knob plan.Knob, v plan.Value) {
	n.t.Helper()
	n.must(n.tryForeign(group, knob, v))
}

// tryForeign writes as another program, which knows nothing of the kernel's bugs.
func (n *node) tryForeign(group string, knob plan.Knob, v plan.Value) error {
	n.t.Helper()
	if knob == plan.Quota && n.tree.Version() == cgroup.V2 {
		quota, err := v.Time()
		n.must(err)
		return n.k.ForeignWrite(path.Join(n.tree.Dir(group), "cpu.max"), strconv.FormatInt(quota.Microseconds(), 10))
	}
	tree, err := cgroup.Detect(foreigner{n.k})
	n.must(err)
	return set(tree, group, knob, v)
}

// foreigner is the FS as others use it.
type foreigner struct{ *sim.Kernel }

func (f foreigner) WriteFile(name string, data []byte) error {
	return f.ForeignWrite(name, string(data))
}

// files reads all that we may ever write, byte by byte.
func (n *node) files() map[string]string {
	fault := n.k.Fault
	n.k.Fault = nil
	defer func() { n.k.Fault = fault }()
	texts := map[string]string{}
	for _, g := range n.k.Groups() {
		for _, f := range []string{"cpu.max", "cpu.max.burst", "cpu.weight", "cpu.idle", "cpu.cfs_quota_us",
			"cpu.cfs_period_us", "cpu.cfs_burst_us", "cpu.shares"} {
			name := path.Join(n.tree.Dir(g), f)
			if data, err := n.k.ReadFile(name); err == nil {
				texts[name] = string(data)
			}
		}
	}
	return texts
}

func (n *node) wantFiles(what string, want map[string]string) {
	n.t.Helper()
	if diff := cmp.Diff(want, n.files()); diff != "" {
		n.t.Errorf("%s: files (-want +got):\n%s", what, diff)
	}
}

// ours counts the writes that were tried by us.
func (n *node) ours() int {
	count := 0
	for _, w := range n.k.Writes() {
		if !w.Foreign {
			count++
		}
	}
	return count
}

func (n *node) outcomes(results []plan.Result) []string {
	var list []string
	for _, r := range results {
		list = append(list, strings.Join([]string{r.Change.Cgroup.Path, string(r.Change.Knob), string(r.Outcome),
			string(r.InForce)}, " "))
	}
	return list
}

func (n *node) wantOutcomes(results []plan.Result, want ...string) {
	n.t.Helper()
	if diff := cmp.Diff(want, n.outcomes(results), cmpopts.EquateEmpty()); diff != "" {
		n.t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

// wantIdempotent restores again: nothing is left to say or to do.
func (n *node) wantIdempotent() {
	n.t.Helper()
	before := n.ours()
	if again := n.w.Restore(nil, false); len(again) > 0 || n.ours() != before {
		n.t.Errorf("restoring again: %+v, %d writes", again, n.ours()-before)
	}
	if left := n.j.Entries(); len(left) > 0 {
		n.t.Errorf("left in the journal: %+v", left)
	}
}

func each(t *testing.T, run func(t *testing.T, n *node)) {
	for name, c := range map[string]sim.Config{"v1": v1, "v2": v2, "v2 divides burst": divides} {
		t.Run(name, func(t *testing.T) { run(t, newNode(t, c)) })
	}
}
