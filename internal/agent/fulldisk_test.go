package agent

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// fullDisk is a journal's disk that can be full.
type fullDisk struct {
	*journal.Memory
	full bool
}

func (d *fullDisk) Append(name string) (journal.File, error) {
	f, err := d.Memory.Append(name)
	return &fullFile{f, d}, err
}

func (d *fullDisk) Create(name string) (journal.File, error) {
	if d.full {
		return nil, syscall.ENOSPC
	}
	f, err := d.Memory.Create(name)
	return &fullFile{f, d}, err
}

type fullFile struct {
	journal.File
	disk *fullDisk
}

func (f *fullFile) Write(data []byte) (int, error) {
	if f.disk.full {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(data)
}

// journalOnDisk has the agent's journal on a disk that can be full.
func (w *world) journalOnDisk() *fullDisk {
	w.t.Helper()
	disk := &fullDisk{Memory: journal.NewMemory()}
	j, err := journal.OpenDisk(disk, "boot", w.kernel.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	w.agent.Writer = apply.New(w.tree, j, w.kernel.Now)
	return disk
}

func overload(w *world) {
	w.kernel.AddGroup("/others")
	w.kernel.SetLoad("/others", sim.Spin(4))
	w.agent.Configure(strategy.Node{Strategy: strategy.Strategy{SharePoolThresholdPercent: 30}}, nil)
}

// TestFullDisk: while the journal cannot be written nothing is raised, and a raise that stands goes all the way back to
// the limit: as the guard takes it back, and as it is no longer needed.
func TestFullDisk(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"overload": overload,
		"not needed": func(w *world) {
			// more than the limit, less than the raise
			w.kernel.SetLoad("/hog", sim.Periodic(100*ms, sim.Fixed(60*ms), 1))
		},
		"none": func(w *world) { w.policy(strategy.None) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			disk := w.journalOnDisk()
			w.hog("/hog")
			w.run(3 * time.Second)
			w.wantRaised("/hog", 50*ms)
			disk.full = true
			w.alone(w.container("/late", 50*ms, sim.Spin(2)))
			end(w)
			w.run(8 * time.Second)
			if got := w.kernel.Bandwidth("/hog").Quota; got != 50*ms {
				t.Errorf("the raise stands at %v while the disk is full", got)
			}
			if got := w.kernel.Bandwidth("/late"); got.Quota != 50*ms || got.Burst != 0 {
				t.Errorf("%v was written, and the journal does not know", got)
			}
			disk.full = false
			if err := w.agent.stop(); err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			w.want("/hog", 50*ms, 0)
		})
	}
}

// TestRefusedRaiseDelaysNoLowering: a further raise is refused for so long that the next attempt is up to a minute
// away. What lowers the quota does not wait for that.
func TestRefusedRaiseDelaysNoLowering(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(w *world) error
		after time.Duration
	}{
		"overload": {func(w *world) error { overload(w); return nil }, 8 * time.Second},
		"none":     {func(w *world) error { w.policy(strategy.None); return nil }, time.Second},
		"a pause":  {func(w *world) error { return w.agent.Pause(w.t.Context(), "/hog", time.Minute) }, 0},
		"a release": {func(w *world) error {
			_, err := w.agent.Release(w.t.Context(), "/hog", time.Minute)
			return err
		}, 0},
		"a resize": {func(w *world) error {
			w.agent.PrepareResize("/hog", cpu.Bandwidth{Quota: 80 * ms, Period: 100 * ms})
			return nil
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			disk := w.journalOnDisk()
			w.alone(w.container("/hog", 50*ms, sim.Periodic(100*ms, sim.Fixed(60*ms), 1)))
			w.run(3 * time.Second)
			w.wantRaised("/hog", 50*ms)
			disk.full = true
			w.kernel.SetLoad("/hog", sim.Spin(2))
			w.run(20 * time.Second)
			w.wantRaised("/hog", 50*ms)
			e, _ := w.agent.ledger.Entry(plan.Key{ID: w.id("/hog"), Knob: plan.Quota})
			if wait := e.Retry.Until().Sub(w.kernel.Now()); wait < 8*time.Second {
				t.Fatalf("the next raise is %v away: the scenario proves nothing", wait)
			}
			if err := c.end(w); err != nil {
				t.Error(err)
			}
			w.run(c.after)
			if got := w.kernel.Bandwidth("/hog").Quota; got != 50*ms {
				t.Errorf("the raise stands at %v", got)
			}
		})
	}
}

// TestRestoreWithoutADisk: where the hold cannot be kept on disk, all is put back, and stays so.
func TestRestoreWithoutADisk(t *testing.T) {
	w := raised(t)
	w.lever.err = errors.New("no space left on device")
	if _, err := w.agent.Hold(t.Context(), false, "test"); !errors.Is(err, w.lever.err) {
		t.Errorf("a hold: %v", err)
	}
	w.run(time.Second)
	w.wantRaised("/lab/a", 50*ms)
	if results, err := w.agent.Hold(t.Context(), true, "test"); !errors.Is(err, w.lever.err) || len(results) == 0 {
		t.Errorf("a restore: %v, %v", results, err)
	}
	w.run(5 * time.Second)
	w.want("/lab/a", 50*ms, 0)
	w.lever.err = nil
	if err := w.agent.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Second)
	w.wantRaised("/lab/a", 50*ms)
}
