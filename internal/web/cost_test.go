package web

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/recent"
	"plimsoll/internal/report"
)

// many are containers of which none changes.
func many(n int) []report.Container {
	list := make([]report.Container, n)
	for i := range list {
		limit := report.Knob{Original: 50 * time.Millisecond, Requested: 50 * time.Millisecond,
			InForce: 50 * time.Millisecond}
		list[i] = report.Container{Cgroup: fmt.Sprintf("/pods/%04d", i), Name: fmt.Sprintf("c%d", i),
			Level: "container", Limit: limit.Original,
			Period: cpu.DefaultPeriod, Quota: limit, Totals: report.Totals{Events: &report.Throttles{}}, Since: t0}
	}
	return list
}

// glanced is an agent that fills the lists that it is given.
type glanced struct {
	fake
	now time.Time
}

func (a *glanced) Glance(list []report.Container) report.Status {
	s := a.status
	a.now = a.now.Add(time.Second)
	s.Now, s.Containers = a.now, append(list[:0], a.status.Containers...)
	return s
}

// bytesOf is how much a call allocates, after a few that make what is used again.
func bytesOf(call func()) uint64 {
	const calls = 20
	for range 3 {
		call()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		call()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / calls
}

// TestFrameOfUnchangedContainers: what a frame allocates depends on what has changed, and not on how many containers
// there are. The garbage of frames was most of what an open page cost the agent.
func TestFrameOfUnchangedContainers(t *testing.T) {
	frame := func(containers int) uint64 {
		a := &glanced{fake: fake{status: healthy()}, now: t0}
		a.status.Containers = many(containers)
		f := newFeed(newSide(newAnswers(local{a}, later, quiet())), a, nil)
		f.running = true // frames are made by hand
		one, g, r := f.join(maxFollowers), glances{agent: a, patience: time.Minute}, recorder{}
		r.start()
		return bytesOf(func() {
			f.frame(&g, &r)
			<-one.frames
		})
	}
	few, thousand := frame(1), frame(1000)
	if thousand > few+10_000 {
		t.Errorf("a frame allocates %d bytes for a thousand containers, %d for one", thousand, few)
	}
}

// TestSceneOfUnchangedContainers: of a container that does not change a scene allocates its row and what the row points
// to, all rows in two pieces. A piece of memory for each number was half of what an open
// page cost the process that serves.
func TestSceneOfUnchangedContainers(t *testing.T) {
	scene := func(containers int) (allocations float64, size uint64) {
		w := newWatcher(nil, SiteOptions{Now: time.Now, Log: quiet()})
		w.kept.store = recent.New(0)
		f := frame{Whole: true, Status: healthy()}
		f.Status.Now, f.Status.Containers = t0, many(containers)
		next := func() {
			w.take(f)
			f.Whole, f.Status.Now, f.Status.Containers = false, f.Status.Now.Add(time.Second), nil
		}
		size = bytesOf(next)
		return testing.AllocsPerRun(20, next), size
	}
	few, _ := scene(1)
	many, size := scene(1000)
	if many > few+100 { // a map of rows has several pieces
		t.Errorf("a scene takes %.0f allocations for a thousand containers, %.0f for one", many, few)
	}
	if size > 700_000 {
		t.Errorf("a scene of a thousand containers allocates %d bytes", size)
	}
}

// gauge is a writer that keeps nothing, and measures the memory that is in use now and then.
type gauge struct {
	written int
	most    uint64
}

func (g *gauge) Write(p []byte) (int, error) {
	if before := g.written >> 20; (g.written+len(p))>>20 > before {
		g.most = max(g.most, inUse())
	}
	g.written += len(p)
	return len(p), nil
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestSnapshotOfManyPeriods: a snapshot file is written container by container. As a whole, that of a full store
// took more memory than the process that serves may have.
func TestSnapshotOfManyPeriods(t *testing.T) {
	w := newWatcher(nil, SiteOptions{Now: time.Now, Log: quiet()})
	w.kept.store = recent.New(0)
	f := frame{Whole: true, Status: healthy()}
	f.Status.Now, f.Status.Containers = t0, many(300)
	w.take(f)
	rng := rand.New(rand.NewPCG(1, 2))
	list := make([]recent.Period, 3000)
	for _, c := range f.Status.Containers {
		for i := range list {
			list[i] = recent.Period{End: t0.UnixMilli() - int64(len(list)-i)*100, Used: rng.Int32N(50_000),
				Quota: 50_000}
		}
		w.kept.store.Add(c.Cgroup, list)
	}
	var g gauge
	before := inUse()
	if err := w.writeSnapshot(&g, w.scene); err != nil {
		t.Fatal(err)
	}
	if more := int64(g.most) - int64(before); g.written < 2<<20 || more > 1<<20 {
		t.Errorf("a snapshot of %d bytes takes %d bytes of memory", g.written, more)
	}
	var k packer
	pieces, err := k.pack(func(to io.Writer) error { return w.writeSnapshot(to, w.scene) })
	if err != nil || len(pieces) < 2 {
		t.Fatalf("%d pieces, %v", len(pieces), err)
	}
	for _, piece := range pieces {
		if cap(piece) > packedPiece {
			t.Errorf("a piece of %d bytes", cap(piece))
		}
	}
}
