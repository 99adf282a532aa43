package runq

import (
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

// The neighbour runs on the other CPU too, which is all that it has reserved, or is not. That CPU changes turns often:
// where a switch has no event (doc.go), who runs there is known from the next switch on.
func TestForcedSharing(t *testing.T) {
	cgrouptest.NeedTwoCPUs(t)
	end := make(chan struct{})
	defer close(end)
	if !emulated() {
		go interrupt(t, 1, &atomic.Int64{}, end)
	}
	p := open(t, Options{})
	a := cgrouptest.New(t)
	a.Prevail()
	ours := set(t, p, a, 1)
	cgrouptest.Pin(t, 0, a.Spin(1)[0])
	for _, reserved := range []float64{1, 2} {
		b := cgrouptest.New(t)
		b.Prevail() // so that it runs elsewhere beside any load
		theirs := set(t, p, b, reserved)
		spinners := b.Spin(2)
		cgrouptest.Pin(t, 0, spinners[0])
		cgrouptest.Pin(t, 1, spinners[1])
		time.Sleep(100 * ms)
		before, ran, begin := pair(t, p, ours, theirs), runTime(t, spinners[1].PID()), time.Now()
		time.Sleep(600 * ms)
		after := pair(t, p, ours, theirs)
		elsewhere := (runTime(t, spinners[1].PID()) - ran).Seconds() / time.Since(begin).Seconds()
		part := (after.Forced - before.Forced).Seconds() / (after.Behind - before.Behind).Seconds()
		least := elsewhere - 0.35
		if emulated() {
			least = 0 // the virtual machine pauses for long, in one state or the other
		}
		if reserved == 1 && (part < least || part == 0) || reserved == 2 && part > 0.05 {
			t.Errorf("of a neighbour with %v CPUs reserved, %.2f is forced; it ran elsewhere for %.2f of the time",
				reserved, part, elsewhere)
		}
		for _, s := range spinners {
			s.Stop()
		}
	}
}

// What the neighbour has elsewhere is interrupted for a tenth of each tick, in five places one after the other: CPUs
// change turns at the same ticks, so that a look at the end of a turn would see it nearly always, or never.
func TestForcedSharingBetweenTicks(t *testing.T) {
	cgrouptest.NeedTwoCPUs(t)
	if emulated() {
		cgrouptest.Elsewhere(t, "the same on a host", "the virtual machine's CPUs run in turn")
	}
	p := open(t, Options{})
	a, b := cgrouptest.New(t), cgrouptest.New(t)
	a.Prevail()
	b.Prevail()
	ours, theirs := set(t, p, a, 1), set(t, p, b, 1)
	spinners := b.Spin(2)
	cgrouptest.Pin(t, 0, a.Spin(1)[0], spinners[0])
	cgrouptest.Pin(t, 1, spinners[1])
	var phase atomic.Int64
	end := make(chan struct{})
	defer close(end)
	go interrupt(t, 1, &phase, end)
	for deadline := time.Now().Add(40 * time.Second); phase.Load() < int64(tick); {
		time.Sleep(20 * ms)
		before, ran, begin := pair(t, p, ours, theirs), runTime(t, spinners[1].PID()), monotonic()
		time.Sleep(200 * ms)
		after := pair(t, p, ours, theirs)
		elsewhere := (runTime(t, spinners[1].PID()) - ran).Seconds() / (monotonic() - begin).Seconds()
		if elsewhere < 0.85 || elsewhere > 0.95 { // another test has a part of that CPU, and takes turns at ticks too
			if time.Now().After(deadline) {
				t.Fatalf("nobody but the two should use that CPU: it ran there for %.2f of the time", elsewhere)
			}
			continue
		}
		part := (after.Forced - before.Forced).Seconds() / (after.Behind - before.Behind).Seconds()
		if math.Abs(part-elsewhere) > 0.1 {
			t.Errorf("interrupted %v after a tick of the clock: %.2f is forced; it ran elsewhere for %.2f of the time",
				time.Duration(phase.Load()), part, elsewhere)
		}
		phase.Add(int64(tick / 5))
	}
}

// tick is that of a kernel with 250 Hz, and a multiple of that with 1000 Hz.
const tick = 4 * ms

// interrupt runs on a CPU for a tenth of each tick, before all others, from phase on.
func interrupt(t *testing.T, cpu int, phase *atomic.Int64, end <-chan struct{}) {
	runtime.LockOSThread() // for good: the thread ends with this function
	var only unix.CPUSet
	only.Set(cpu)
	if err := errors.Join(unix.SchedSetaffinity(0, &only), unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)); err != nil {
		t.Error(err)
		return
	}
	for {
		select {
		case <-end:
			return
		default:
		}
		from := (monotonic()/tick+1)*tick + time.Duration(phase.Load())
		until := unix.NsecToTimespec(int64(from))
		for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil) == unix.EINTR {
		}
		for monotonic() < from+tick/10 {
		}
	}
}
