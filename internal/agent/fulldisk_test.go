package agent

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/journal"
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

// TestFullDisk: while the journal cannot be written nothing is raised, and a raise that stands goes all the way back to
// the limit: as the guard takes it back, and as it is no longer needed.
func TestFullDisk(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"overload": func(w *world) {
			w.kernel.AddGroup("/others")
			w.kernel.SetLoad("/others", sim.Spin(4))
			w.agent.Configure(strategy.Node{Strategy: strategy.Strategy{SharePoolThresholdPercent: 30}}, nil)
		},
		"not needed": func(w *world) {
			// more than the limit, less than the raise
			w.kernel.SetLoad("/hog", sim.Periodic(100*ms, sim.Fixed(60*ms), 1))
		},
		"none": func(w *world) { w.policy(strategy.None) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			disk := &fullDisk{Memory: journal.NewMemory()}
			j, err := journal.OpenDisk(disk, "boot", w.kernel.Now)
			if err != nil {
				t.Fatal(err)
			}
			w.agent.Writer = apply.New(w.tree, j, w.kernel.Now)
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
