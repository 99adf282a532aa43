package trial

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/agent"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// declare says what the limit of a container is, and what it is about to be; of a pod the sum.
// Then nothing of it is paused.
func (w *World) declare(path string, is, next time.Duration) {
	of := func(quota time.Duration) cpu.Bandwidth { return cpu.Bandwidth{Quota: quota, Period: 100 * ms} }
	pods := append([]workload.Pod{}, w.place.pods...)
	for i := range pods {
		containers := append([]workload.Container{}, pods[i].Containers...)
		for j := range containers {
			c := &containers[j]
			if c.Path != path {
				continue
			}
			c.Declared, c.Paused = &workload.Declared{Bandwidth: of(is), Source: "trial"}, next != 0
			if next != 0 {
				c.Declared.Next = of(next)
			}
			if pods[i].Path != "" {
				declared := *c.Declared
				pods[i].Declared = &declared
			}
		}
		pods[i].Containers = containers
	}
	w.place.pods = pods
}

// wantNothing switches every policy off.
func (w *World) wantNothing() {
	pods := append([]workload.Pod{}, w.place.pods...)
	for i := range pods {
		pods[i].Containers = append([]workload.Container{}, pods[i].Containers...)
		for j := range pods[i].Containers {
			pods[i].Containers[j].Strategy.Policy = strategy.None
		}
	}
	w.place.pods = pods
}

// checkDeclared: without demand for a value of ours, each file has what its owner declares, and no burst.
func checkDeclared(t *testing.T, w *World, what string, want map[string]time.Duration) {
	t.Helper()
	for path, quota := range want {
		if got := w.Kernel.Bandwidth(path); got.Quota != quota || got.Burst != 0 {
			t.Errorf("%s: %s holds %v, declared is %v", what, path, got, quota)
		}
	}
}

// TestResizeAtEveryState: an owner resizes a container in a pod at any moment of a burst, a raise and its end, to less,
// to more and to the very value in the file. The owner writes once, and does not check whether the kernel accepted it.
// The declared value is in force in the end, and after a stop.
func TestResizeAtEveryState(t *testing.T) {
	for version := 1; version <= 2; version++ {
		for n := range 60 {
			seed := uint64(n)
			name := fmt.Sprintf("v%d/%d", version, n)
			rng := rand.New(rand.NewPCG(seed, 11))
			k := mainline(4, seed)
			k.Version = version
			a := Group{Path: "/kube/pod/a", Pod: "/kube/pod", Quota: 50 * ms, Period: 100 * ms,
				Strategy: with(strategy.Auto), Load: sim.OnOff(2*time.Second, 5*time.Second, 2)}
			if n%4 < 2 { // which needs no more than the burst
				a.Load = sim.Periodic(time.Second, sim.Fixed(10*ms), 1)
			}
			w := mustNew(t, Scenario{Kernel: k, Threshold: 100, Groups: []Group{a}, Events: n%2 == 1})
			w.declare(a.Path, a.Quota, 0)
			w.Run(time.Second+time.Duration(n)*131*ms, nil)

			to := []time.Duration{20 * ms, 30 * ms, 80 * ms, 200 * ms, w.Kernel.Bandwidth(a.Path).Quota}[rng.IntN(5)]
			write := func() { // it may be refused: for a burst, on v1 for the pod's or the container's quota
				if to > a.Quota {
					_ = w.Limit(a.Pod, to, a.Period)
				}
				_ = w.Limit(a.Path, to, a.Period)
				if to < a.Quota {
					_ = w.Limit(a.Pod, to, a.Period)
				}
			}
			late := time.Duration(rng.IntN(1500)) * time.Millisecond
			final := to
			how := []string{"writes, then declares", "declares, then writes", "announces",
				"announces, and gives up"}[rng.IntN(4)]
			switch how {
			case "writes, then declares":
				write()
				w.Run(late/3, nil) // sooner than the value counts as foreign for good
				w.declare(a.Path, to, 0)
			case "declares, then writes":
				w.declare(a.Path, to, 0)
				w.Run(late, nil)
				write()
			case "announces":
				w.declare(a.Path, a.Quota, to)
				w.Run(late, nil)
				write()
				w.Run(late, nil)
				w.declare(a.Path, to, 0)
			case "announces, and gives up":
				w.declare(a.Path, a.Quota, to)
				w.Run(late, nil)
				w.declare(a.Path, a.Quota, 0)
				final = a.Quota
			}
			w.Run(12*time.Second, nil)
			want := map[string]time.Duration{a.Path: final, a.Pod: final}
			if n%3 == 0 {
				w.Stop()
				checkDeclared(t, w, fmt.Sprintf("%s to %v, %s, stopped", name, to, how), want)
				continue
			}
			w.wantNothing()
			w.Run(10*time.Second, nil)
			checkDeclared(t, w, fmt.Sprintf("%s to %v, %s", name, to, how), want)
		}
	}
}

// TestHandOverAtEveryWrite: after each write of the first agent another one takes over. No group is left above its
// limit, and what both agents have written is restored in the end.
func TestHandOverAtEveryWrite(t *testing.T) {
	for n := range 24 {
		a, b := service("/kube/pod/a", strategy.Auto), Group{Path: "/lab/hog", Quota: 30 * ms, Period: 100 * ms,
			Strategy: with(strategy.Auto), Load: sim.OnOff(3*time.Second, 6*time.Second, 2)}
		a.Pod = "/kube/pod"
		w := mustNew(t, Scenario{Kernel: mainline(4, uint64(n)), Threshold: 100, Groups: []Group{a, b},
			Events: n%2 == 1})
		before := w.snapshot()
		from, done := len(w.Kernel.Writes()), false
		w.Run(20*time.Second, func(agent.Turn) {
			if done || len(w.Kernel.Writes())-from <= n {
				return
			}
			done = true
			if err := w.HandOver(); err != nil {
				t.Fatal(err)
			}
			for _, g := range []Group{a, b} {
				if got := w.Kernel.Bandwidth(g.Path).Quota; got != g.Quota {
					t.Errorf("write %d: %s is left at %v for the next agent", n, g.Path, got)
				}
			}
		})
		if !done {
			t.Fatalf("only %d writes: no handover", len(w.Kernel.Writes())-from)
		}
		w.Stop()
		if diff := cmp.Diff(before, w.snapshot()); diff != "" {
			t.Errorf("write %d: not put back: %s", n, diff)
		}
	}
}

// fullDisk is a journal's disk that is full at times.
type fullDisk struct {
	journal.Disk
	full bool
}

func (d *fullDisk) Append(name string) (journal.File, error) {
	f, err := d.Disk.Append(name)
	return fullFile{f, d}, err
}

func (d *fullDisk) Create(name string) (journal.File, error) {
	f, err := d.Disk.Create(name)
	return fullFile{f, d}, err
}

type fullFile struct {
	journal.File
	disk *fullDisk
}

func (f fullFile) Write(data []byte) (int, error) {
	if f.disk.full {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(data)
}

// TestFullDiskBesideAGuard: neighbours come while the journal's disk is full, at any moment of a raise. Raises are gone
// within two seconds as ever, and no raise is made. Once the disk has free space, raises are made again.
func TestFullDiskBesideAGuard(t *testing.T) {
	for n := range 20 {
		seed := uint64(n)
		hog := Group{Path: "/lab/hog", Quota: 50 * ms, Period: 100 * ms, Strategy: with(strategy.CFSQuotaBurstOnly),
			Load: sim.Spin(2)}
		at := 3 + n%5
		noise := Group{Path: "/lab/noise", Quota: 390 * ms, Period: 100 * ms, Strategy: with(strategy.None),
			Load: sim.Script(4, job(at), job(at), job(at), job(at))}
		w := mustNew(t, Scenario{Kernel: mainline(4, seed), Threshold: 50, Groups: []Group{hog, noise},
			Events: n%2 == 1})
		disk := &fullDisk{Disk: journal.NewMemory()}
		w.disk = disk
		if err := w.Restart(); err != nil {
			t.Fatal(err)
		}
		before := w.snapshot()
		w.Run(time.Duration(at)*time.Second-time.Duration(n)*17*ms, nil)
		disk.full = true
		w.Run(3*time.Second, nil)
		if got := w.Kernel.Bandwidth(hog.Path).Quota; got != hog.Quota {
			t.Errorf("%d: a raise stands at %v on an overloaded node", n, got)
		}
		disk.full = false
		w.Run(5*time.Second, nil)
		w.Stop()
		if diff := cmp.Diff(before, w.snapshot()); diff != "" {
			t.Errorf("%d: not put back: %s", n, diff)
		}
	}
}
