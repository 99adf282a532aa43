package apply

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// owner writes the quota of a group as a runtime does.
type owner struct {
	t     *testing.T
	group *cgrouptest.Group
	file  string
	form  string
}

func newOwner(t *testing.T, g *cgrouptest.Group) *owner {
	o := &owner{t, g, g.File("cpu.max"), "%d 100000"}
	if g.Tree().Version() == cgroup.V1 {
		o.file, o.form = g.File("cpu.cfs_quota_us"), "%d"
	}
	return o
}

func (o *owner) write(quota time.Duration, flags int) {
	o.t.Helper()
	f, err := os.OpenFile(o.file, os.O_WRONLY|flags, 0)
	if err != nil {
		o.t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, o.form, quota.Microseconds()); err != nil {
		o.t.Fatal(err)
	}
}

func (o *owner) read() time.Duration {
	o.t.Helper()
	b, err := o.group.Tree().Bandwidth(o.group.Path)
	if err != nil {
		o.t.Fatal(err)
	}
	return b.Quota
}

// race is a writer that refills a group of many children: the kernel visits all of them at each write.
type race struct {
	t        *testing.T
	pod      *realPod
	w        *Writer
	refill   plan.Change
	turn     sync.Mutex
	turns    bool // the loop and the owner take turns
	rounds   atomic.Int64
	reported atomic.Int64
}

func newRace(t *testing.T, turns bool, children int) *race {
	t.Helper()
	p := newRealPod(t)
	cgrouptest.Need(t, p.pod.Features().Get(cgroup.FeatureBurst))
	for i := range children {
		p.a.Child(fmt.Sprintf("child%d", i))
	}
	w, _ := p.writer(t.TempDir())
	notify, err := cgroup.NewNotify(p.tree, p.a.Dir().Root())
	p.must(err)
	t.Cleanup(func() { notify.Close() })
	r := &race{t: t, pod: p, w: w.Watching(notify), turns: turns, refill: p.change(p.a, plan.Burst, "0s")}
	r.refill.Refill = true
	r.expect()
	return r
}

// expect has the group watched, as before its first refill.
func (r *race) expect() {
	r.w.ExpectRefills(nil, nil)
	r.w.ExpectRefills([]workload.ID{r.refill.Cgroup}, nil)
}

func (r *race) look() {
	found, err := r.w.Undone()
	if err != nil {
		r.t.Error(err)
	}
	r.reported.Add(int64(len(found)))
}

// alone does something between two refills, if they take turns.
func (r *race) alone(do func()) {
	if r.turns {
		r.turn.Lock()
		defer r.turn.Unlock()
	}
	do()
}

func (r *race) loop(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		r.alone(func() { r.w.Do([]plan.Change{r.refill}); r.look() })
		r.rounds.Add(1)
	}
}

// own writes the quota as its owner for a while, and counts the writes that were undone: found 0.3 ms later,
// and in all.
func (r *race) own(flags int) (writes int, soon, lost int64) {
	o, most := newOwner(r.t, r.pod.a), 6*time.Second
	if r.turns {
		most = time.Second
	}
	begin := time.Now()
	for ; lost < 10 && time.Since(begin) < most; writes++ {
		if lost == 0 && !r.turns && !emulated() {
			most = min(time.Minute, time.Since(begin)+6*time.Second) // a scenario with none proves nothing
		}
		want := 40 * ms
		if o.read() == want {
			want = 45 * ms
		}
		r.alone(func() { o.write(want, flags) })
		time.Sleep(300 * time.Microsecond)
		if o.read() != want {
			soon++
		}
		for begun := r.rounds.Load(); r.rounds.Load() < begun+3; { // what had begun before is over, and was looked at
			time.Sleep(50 * time.Microsecond)
		}
		if o.read() != want {
			lost++
		}
		if got := r.reported.Load(); got != lost {
			r.t.Errorf("after %d writes: %d were undone, %d reported", writes+1, lost, got)
			break
		}
	}
	return writes, soon, lost
}

// emulated: the CPUs take turns.
func emulated() bool { return os.Getenv("PLIMSOLL_EMULATED") != "" }

// TestKernelUndone: beside a process that refills a group of 200 children in a loop, an owner's writes of the quota are
// undone by the kernel. Each one that is, and no other, is reported. In turns with the refills none is.
func TestKernelUndone(t *testing.T) {
	for _, c := range []struct {
		name  string
		turns bool
		flags int
	}{{"race", false, os.O_TRUNC}, {"race without O_TRUNC", false, 0}, {"turns", true, os.O_TRUNC}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRace(t, c.turns, 200)
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() { defer close(stopped); r.loop(stop) }()
			writes, soon, lost := r.own(c.flags)
			close(stop)
			<-stopped
			r.look()
			reported := r.reported.Load()
			t.Logf("%d writes, %d undone (%d within 0.3 ms), %d reported, %d refills", writes, lost, soon, reported,
				r.rounds.Load())
			if reported != lost || c.turns && lost > 0 {
				t.Errorf("%d were undone, %d reported", lost, reported)
			}
			if !c.turns && lost == 0 && !emulated() {
				t.Error("no write was undone: it proves nothing")
			}
		})
	}
}

// TestKernelOwnWritesAreNotUndone: a raise and its give-back before a refill are no owner's writes that it undid, also
// where the files of the group are kept open.
func TestKernelOwnWritesAreNotUndone(t *testing.T) {
	r := newRace(t, true, 0)
	p := r.pod
	p.tree.KeepOnly(10)
	p.tree.KeepOpen(p.a.Path)
	for _, quota := range []plan.Value{"90ms", "50ms"} {
		p.wantOutcomes(r.w.Do([]plan.Change{p.change(p.a, plan.Quota, quota)}), plan.Applied)
		r.look()
	}
	p.wantOutcomes(r.w.Do([]plan.Change{r.refill}), plan.Applied)
	r.look()
	if n := r.reported.Load(); n != 0 {
		t.Errorf("%d writes are reported, and no owner wrote", n)
	}
}

// TestKernelUndoneAtTheFirstRefill: an owner's write that the first refill of a group undoes is reported, and no other.
func TestKernelUndoneAtTheFirstRefill(t *testing.T) {
	r := newRace(t, false, 2000)
	o, random, rounds, lost := newOwner(t, r.pod.a), rand.New(rand.NewPCG(1, 2)), 0, int64(0)
	for end := time.Now().Add(15 * time.Second); lost < 3 && time.Now().Before(end); rounds++ {
		r.expect()
		want := 40*ms + o.read()%(10*ms) + time.Millisecond // 41 to 50 ms, each other than the one before
		var ready atomic.Bool
		wrote := make(chan struct{})
		go func() { defer close(wrote); ready.Store(true); o.write(want, os.O_TRUNC) }()
		for !ready.Load() {
		}
		// the refill is to meet the write
		for begin, wait := time.Now(), time.Duration(random.IntN(int(ms/5))); time.Since(begin) < wait; {
		}
		r.w.Do([]plan.Change{r.refill})
		<-wrote
		r.look()
		if o.read() != want {
			lost++
		}
		if got := r.reported.Load(); got != lost {
			t.Fatalf("after %d writes: %d were undone, %d reported", rounds+1, lost, got)
		}
	}
	t.Logf("%d writes, %d undone", rounds, lost)
	if lost == 0 && !emulated() {
		t.Error("no write was undone: it proves nothing")
	}
}
