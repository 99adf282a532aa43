package apply

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// The environment of the child that is to be killed: its state directory, its pod, the seed of its changes.
const (
	stateVar = "PLIMSOLL_TEST_STATE"
	podVar   = "PLIMSOLL_TEST_POD"
	seedVar  = "PLIMSOLL_TEST_SEED"
)

func TestMain(m *testing.M) {
	if os.Getenv(stateVar) != "" {
		fmt.Fprintln(os.Stderr, victim())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// realPod is a pod of two containers on the running kernel.
type realPod struct {
	t    *testing.T
	pod  *cgrouptest.Group
	a, b *cgrouptest.Group
	tree *cgroup.Tree
}

func newRealPod(t *testing.T) *realPod {
	t.Helper()
	pod := cgrouptest.New(t)
	p := &realPod{t: t, pod: pod, a: pod.Child("a"), b: pod.Child("b"), tree: pod.Tree()}
	p.limit()
	return p
}

// limit gives the groups what their owner wants. The burst of b is not ours.
func (p *realPod) limit() {
	p.t.Helper()
	p.pod.Limit(100 * ms)
	p.a.Limit(50 * ms)
	p.b.Limit(50 * ms)
	if canBurst(p.tree, p.b.Path) {
		p.must(p.tree.SetBurst(p.b.Path, 20*ms))
	}
}

func canBurst(tree *cgroup.Tree, group string) bool {
	_, err := tree.Burst(group)
	return err == nil
}

func (p *realPod) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// files reads all that we may ever write, byte by byte.
func (p *realPod) files() map[string]string {
	texts := map[string]string{}
	for _, g := range []*cgrouptest.Group{p.pod, p.a, p.b} {
		for _, f := range []string{"cpu.max", "cpu.max.burst", "cpu.weight", "cpu.idle", "cpu.cfs_quota_us",
			"cpu.cfs_period_us", "cpu.cfs_burst_us", "cpu.shares"} {
			if data, err := os.ReadFile(g.File(f)); err == nil {
				texts[g.Path+"/"+f] = string(data)
			}
		}
	}
	if len(texts) < 6 {
		p.t.Fatalf("only %d files: %v", len(texts), texts)
	}
	return texts
}

func (p *realPod) wantFiles(what string, want map[string]string) {
	p.t.Helper()
	if diff := cmp.Diff(want, p.files()); diff != "" {
		p.t.Errorf("%s: files (-want +got):\n%s", what, diff)
	}
}

func (p *realPod) writer(dir string) (*Writer, *journal.Journal) {
	p.t.Helper()
	boot, err := journal.BootID()
	p.must(err)
	j, err := journal.Open(dir, boot, time.Now)
	p.must(err)
	p.t.Cleanup(func() { j.Close() })
	return New(p.tree, j, time.Now), j
}

func (p *realPod) change(g *cgrouptest.Group, knob plan.Knob, to plan.Value) plan.Change {
	p.t.Helper()
	inode, err := p.tree.Inode(g.Path)
	p.must(err)
	held, err := Read(p.tree, g.Path, knob)
	p.must(err)
	return plan.Change{Cgroup: workload.ID{Path: g.Path, Inode: inode}, Knob: knob, From: held, To: to}
}

func (p *realPod) wantOutcomes(results []plan.Result, want ...plan.Outcome) {
	p.t.Helper()
	var got []plan.Outcome
	for _, r := range results {
		got = append(got, r.Outcome)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Errorf("outcomes (-want +got):\n%s%+v", diff, results)
	}
}

func TestKernelApplyAndRestore(t *testing.T) {
	p := newRealPod(t)
	before := p.files()
	w, j := p.writer(t.TempDir())
	p.wantOutcomes(w.Do([]plan.Change{ // in the worst order
		p.change(p.a, plan.Quota, "160ms"),
		p.change(p.b, plan.Quota, "40ms"),
		p.change(p.pod, plan.Quota, "250ms"),
		p.change(p.a, plan.Weight, p.change(p.b, plan.Weight, "").From+"1"),
	}), plan.Applied, plan.Applied, plan.Applied, plan.Applied)
	p.wantOutcomes(w.Restore(nil, false), plan.Applied, plan.Applied, plan.Applied, plan.Applied)
	p.wantFiles("restored", before)
	if again := w.Restore(nil, false); len(again)+len(j.Entries()) > 0 {
		t.Errorf("restoring again: %+v, %+v", again, j.Entries())
	}
}

func TestKernelBurst(t *testing.T) {
	p := newRealPod(t)
	cgrouptest.Need(t, p.pod.Features().Get(cgroup.FeatureBurst))
	before := p.files()
	w, _ := p.writer(t.TempDir())
	p.wantOutcomes(w.Do([]plan.Change{
		p.change(p.a, plan.Burst, "160ms"), p.change(p.a, plan.Quota, "160ms"), p.change(p.pod, plan.Quota, "250ms"),
	}), plan.Applied, plan.Applied, plan.Applied)
	p.wantOutcomes(w.Do([]plan.Change{ // down again: burst before quota
		p.change(p.pod, plan.Quota, "120ms"), p.change(p.a, plan.Quota, "70ms"), p.change(p.a, plan.Burst, "60ms"),
	}), plan.Applied, plan.Applied, plan.Applied)
	for change, want := range map[plan.Change]string{
		p.change(p.a, plan.Quota, "50ms"):  "burst 60ms above quota 50ms",
		p.change(p.a, plan.Burst, "71ms"):  "burst 71ms above quota 70ms",
		p.change(p.pod, plan.Quota, "1us"): "below the least",
	} {
		r := w.Do([]plan.Change{change})
		p.wantOutcomes(r, plan.Refused)
		if !strings.Contains(r[0].Err, want) {
			t.Errorf("error %q does not say %q", r[0].Err, want)
		}
	}
	w.Restore(nil, false)
	p.wantFiles("restored", before)
}

// TestKernelHierarchy: v1 refuses a child more than its parent has, v2 takes it.
func TestKernelHierarchy(t *testing.T) {
	p := newRealPod(t)
	before := p.files()
	w, _ := p.writer(t.TempDir())
	for change, want := range map[plan.Change]string{
		p.change(p.a, plan.Quota, "101ms"):  "above the quota of the parent " + p.pod.Path,
		p.change(p.pod, plan.Quota, "49ms"): "below the quota of the child " + p.a.Path,
	} {
		r := w.Do([]plan.Change{change})
		if p.tree.Version() == cgroup.V2 {
			p.wantOutcomes(r, plan.Applied)
			continue
		}
		p.wantOutcomes(r, plan.Refused)
		if !strings.Contains(r[0].Err, want) {
			t.Errorf("error %q does not say %q", r[0].Err, want)
		}
	}
	w.Restore(nil, false)
	p.wantFiles("restored", before)
}

func TestKernelIdle(t *testing.T) {
	p := newRealPod(t)
	cgrouptest.Need(t, p.pod.Features().Get(cgroup.FeatureIdle))
	p.must(p.tree.SetWeight(p.a.Path, 300))
	before := p.files()
	w, _ := p.writer(t.TempDir())
	p.wantOutcomes(w.Do([]plan.Change{p.change(p.a, plan.Idle, "1")}), plan.Applied)
	p.wantOutcomes(w.Restore(nil, false), plan.Applied)
	p.wantFiles("restored", before)
}

func TestKernelGone(t *testing.T) {
	p := newRealPod(t)
	w, j := p.writer(t.TempDir())
	p.wantOutcomes(w.Do([]plan.Change{p.change(p.a, plan.Quota, "60ms"), p.change(p.b, plan.Quota, "60ms")}),
		plan.Applied, plan.Applied)
	stale := p.change(p.a, plan.Quota, "70ms")
	p.a.Remove()
	p.b.Remove()
	p.b = p.pod.Child("b")
	p.b.Limit(60 * ms) // the very value, in another group
	p.wantOutcomes(w.Do([]plan.Change{stale}), plan.Gone)
	p.wantOutcomes(w.Restore(nil, false), plan.Gone)
	if b := p.change(p.b, plan.Quota, ""); b.From != "60ms" || len(j.Entries()) > 0 {
		t.Errorf("the new group holds %s; entries %+v", b.From, j.Entries())
	}
}

// TestKernelDyingChild: a pod is restored at the very moment that its larger container has gone.
func TestKernelDyingChild(t *testing.T) {
	p := newRealPod(t)
	w, _ := p.writer(t.TempDir())
	for range 5 {
		p.wantOutcomes(w.Do([]plan.Change{p.change(p.pod, plan.Quota, "200ms"), p.change(p.b, plan.Quota, "150ms")}),
			plan.Applied, plan.Applied)
		p.b.Remove()
		p.wantOutcomes(w.Restore(nil, false), plan.Gone, plan.Applied)
		p.b = p.pod.Child("b")
	}
}

// victim is the child: it changes its pod as fast as it can until it is killed.
func victim() error {
	seed, err := strconv.ParseUint(os.Getenv(seedVar), 10, 64)
	if err != nil {
		return err
	}
	tree, err := cgroup.Detect(cgroup.NewDir(cgrouptest.Root()))
	if err != nil {
		return err
	}
	boot, err := journal.BootID()
	if err != nil {
		return err
	}
	j, err := journal.Open(os.Getenv(stateVar), boot, time.Now)
	if err != nil {
		return err
	}
	w, rnd, pod := New(tree, j, time.Now), rand.New(rand.NewPCG(seed, 0)), os.Getenv(podVar)
	fmt.Println("ready")
	for {
		var changes []plan.Change
		for _, group := range []string{pod, pod + "/a", pod + "/b"} {
			knobs := []plan.Knob{plan.Quota}
			if canBurst(tree, group) {
				knobs = append(knobs, plan.Burst)
			}
			for _, knob := range knobs {
				c, err := randomChange(tree, j, rnd, group, knob)
				if err != nil {
					return err
				}
				changes = append(changes, c)
			}
		}
		w.Do(changes)
	}
}

// randomChange raises or lowers, or puts back; the kernel refuses some of what comes out.
func randomChange(tree *cgroup.Tree, j *journal.Journal, rnd *rand.Rand, group string,
	knob plan.Knob) (plan.Change, error) {
	inode, err := tree.Inode(group)
	if err != nil {
		return plan.Change{}, err
	}
	held, err := Read(tree, group, knob)
	id := workload.ID{Path: group, Inode: inode}
	c := plan.Change{Cgroup: id, Knob: knob, From: held, Min: "0s", Max: "1s"}
	c.To = plan.Time(time.Duration(rnd.IntN(200)) * ms)
	if e, ok := j.Entry(id, knob); ok && rnd.IntN(4) == 0 {
		c.To, c.Restore = e.Target(), true
	}
	return c, err
}

// TestKernelKilledAtAnyInstant kills a process that writes in a loop, again and again, and restores.
func TestKernelKilledAtAnyInstant(t *testing.T) {
	const kills, seed = 30, 1
	rnd := rand.New(rand.NewPCG(seed, 0))
	p := newRealPod(t)
	state := t.TempDir()
	caught := 0
	for kill := range kills {
		p.limit()
		want := p.files()
		p.killed(state, kill, time.Duration(rnd.IntN(40_000))*time.Microsecond)
		s, err := journal.Load(state)
		p.must(err)
		if len(s.Entries) > 0 {
			caught++
		}
		switch kill % 3 {
		case 1: // another program sets a limit meanwhile
			if canBurst(p.tree, p.a.Path) {
				p.must(p.tree.SetBurst(p.a.Path, 0))
			}
			p.must(p.tree.SetQuota(p.a.Path, 1500*time.Microsecond))
			for name, text := range p.files() {
				if strings.HasPrefix(name, p.a.Path) {
					want[name] = text
				}
			}
		case 2: // a container comes and goes
			p.b.Remove()
			p.b = p.pod.Child("b")
			for name, text := range p.files() {
				if strings.HasPrefix(name, p.b.Path) {
					want[name] = text
				}
			}
		}
		w, j := p.writer(state)
		w.Restore(nil, false)
		p.wantFiles(fmt.Sprintf("kill %d, journal %+v", kill, s.Entries), want)
		if again := w.Restore(nil, false); len(again)+len(j.Entries()) > 0 {
			t.Fatalf("kill %d: restoring again: %+v, %+v", kill, again, j.Entries())
		}
		p.must(j.Close())
		if t.Failed() {
			return
		}
	}
	if caught < kills/2 {
		t.Errorf("in only %d of %d kills there was anything to restore", caught, kills)
	}
}

// killed runs a victim and kills it some time after it has begun.
func (p *realPod) killed(state string, seed int, after time.Duration) {
	p.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), stateVar+"="+state, podVar+"="+p.pod.Path, seedVar+"="+strconv.Itoa(seed))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	p.must(err)
	p.must(cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	time.Sleep(after)
	killErr := cmd.Process.Kill()
	waitErr := cmd.Wait()
	if err != nil || line != "ready\n" || killErr != nil || waitErr == nil ||
		!strings.Contains(waitErr.Error(), "killed") {
		p.t.Fatalf("the child said %q, %v; kill: %v; end: %v", line, err, killErr, waitErr)
	}
}
