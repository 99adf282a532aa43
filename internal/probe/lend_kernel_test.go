package probe

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPriorityIsLentToAll: from the end of a wait to the next one the other threads have real-time priority, below that
// of the thread that waits, and then what they had before.
func TestPriorityIsLentToAll(t *testing.T) {
	plain, nice := stands(t, unix.SchedAttr{}), stands(t, unix.SchedAttr{Nice: 7})
	batch := stands(t, unix.SchedAttr{Policy: unix.SCHED_BATCH})
	others := []int{plain, nice, batch}
	have := func() (list []unix.SchedAttr) {
		for _, thread := range others {
			attr, err := unix.SchedGetAttr(thread, 0)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, unix.SchedAttr{Policy: attr.Policy, Nice: attr.Nice, Priority: attr.Priority})
		}
		return list
	}
	own := []unix.SchedAttr{{}, {Nice: 7}, {Policy: unix.SCHED_BATCH}}
	lent := slices.Repeat([]unix.SchedAttr{{Policy: unix.SCHED_FIFO, Priority: lentPriority}}, len(others))
	b, err := newBlocker(-1) // poll(2) ignores it
	if err != nil {
		t.Fatal(err)
	}
	b.lend = newLender(&unix.SchedAttr{})
	waits := func(span time.Duration) {
		if err := b.wait(time.Now().Add(span)); err != nil {
			t.Error(err)
		}
	}
	turn := make(chan func())
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // and ends with its thread
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: realtimePriority}
		if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
			t.Error(err)
		}
		for do := range turn {
			do()
			done <- struct{}{}
		}
	}()
	defer close(turn)
	onReader := func(do func()) { turn <- do; <-done }
	for range 2 { // what was put back is lent again
		within(t, 10*time.Second, "a wait without a new thread ends", func() bool {
			onReader(func() { waits(time.Millisecond) })
			return slices.Equal(have(), lent)
		})
		turn <- func() {
			for until := time.Now().Add(200 * time.Millisecond); time.Now().Before(until); {
				waits(time.Until(until)) // a signal of the runtime may end it sooner
			}
		}
		within(t, 150*time.Millisecond, "the others have what they had", func() bool {
			return slices.Equal(have(), own)
		})
		<-done
	}
	onReader(func() { waits(time.Millisecond) })
	onReader(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	})
	if got := have(); !slices.Equal(got, own) {
		t.Errorf("in the end: %+v, want %+v", got, own)
	}
}

// TestNothingIsLentToStrangers: where the list is old, a number in it may be that of another program's thread by now.
func TestNothingIsLentToStrangers(t *testing.T) {
	stranger := exec.Command("sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	ours := stands(t, unix.SchedAttr{})
	l := newLender(&unix.SchedAttr{})
	l.threads[0], l.threads[1] = int32(stranger.Process.Pid), int32(ours)
	l.own[0], l.own[1] = unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: 5}, unix.SchedAttr{Size: unix.SizeofSchedAttr}
	l.listed.Sec = 1
	raise := func() {
		for !l.lent { // Go may make a thread at any time
			if err := unix.Fstat(l.tasks, &l.stat); err != nil {
				t.Fatal(err)
			}
			l.links = uint64(l.stat.Nlink)
			l.raise()
		}
	}
	for _, c := range []struct {
		does func()
		ours uint32
	}{{raise, unix.SCHED_FIFO}, {l.back, unix.SCHED_NORMAL}} {
		c.does()
		theirs, err := unix.SchedGetAttr(stranger.Process.Pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		own, err := unix.SchedGetAttr(ours, 0)
		if err != nil {
			t.Fatal(err)
		}
		if theirs.Policy != unix.SCHED_NORMAL || theirs.Nice != 0 || own.Policy != c.ours {
			t.Errorf("the stranger has %+v, our own thread %+v", theirs, own)
		}
	}
}

// TestAllThreadsOrNone: nothing is lent while there is a thread that is not known, and one that was made while priority
// was lent gives it back.
func TestAllThreadsOrNone(t *testing.T) {
	known := stands(t, unix.SchedAttr{})
	l := newLender(&unix.SchedAttr{})
	defer unix.Close(l.tasks)
	l.back()
	for known := true; known; { // Go may have a thread to spare
		stands(t, unix.SchedAttr{})
		if err := unix.Fstat(l.tasks, &l.stat); err != nil {
			t.Fatal(err)
		}
		known = uint64(l.stat.Nlink) == l.links
	}
	l.raise()
	if has, err := unix.SchedGetAttr(known, 0); err != nil || has.Policy != unix.SCHED_NORMAL {
		t.Errorf("a thread is not known, and another has %+v, %v", has, err)
	}
	made := stands(t, unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: lentPriority})
	l.back()
	if has, err := unix.SchedGetAttr(made, 0); err != nil || has.Policy != unix.SCHED_NORMAL {
		t.Errorf("a thread that was made meanwhile has %+v, %v", has, err)
	}
}

// TestManyThreads: nothing is lent to very many threads, and they are not listed at each wait.
func TestManyThreads(t *testing.T) {
	l := newLender(&unix.SchedAttr{})
	defer unix.Close(l.tasks)
	for range lentMost + 1 {
		stands(t, unix.SchedAttr{})
	}
	for again := true; again; again = l.links == 0 { // a thread was made or ended meanwhile
		l.back()
	}
	if l.threads[0] != 0 {
		t.Errorf("%d threads would have the priority", lentMost+1)
	}
}

// TestNothingIsLentInARealTimeProcess: the priority of its threads is somebody else's. One thread that has it says
// nothing: Go never ends the first thread of a process, be it that of a reader which is gone.
func TestNothingIsLentInARealTimeProcess(t *testing.T) {
	fifo := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: realtimePriority}
	first := os.Getpid()
	was, err := unix.SchedGetAttr(first, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.SchedSetAttr(first, was, 0)
	if err := unix.SchedSetAttr(first, fifo, 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		had   *unix.SchedAttr
		lends bool
	}{{&unix.SchedAttr{Size: unix.SizeofSchedAttr}, true}, {fifo, false}} {
		b, err := newBlocker(-1)
		if err != nil {
			t.Fatal(err)
		}
		onAnother(first, func() {
			if err := unix.SchedSetAttr(0, c.had, 0); err != nil {
				t.Error(err)
			}
			p := &Probe{realtime: true, ring: &Ring{blocker: b}}
			p.prioritize()
		})
		if (b.lend != nil) != c.lends {
			t.Errorf("a reader that had %+v: lends %v, want %v", c.had, b.lend != nil, c.lends)
		}
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}
}

// onAnother does something on a thread that is not a certain one, and ends with it.
func onAnother(than int, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == than {
			defer runtime.UnlockOSThread()
			onAnother(than, do) // while this goroutine keeps that thread
			return
		}
		do()
	}()
	<-done
}

// stands is a thread that does nothing until the test ends.
func stands(t *testing.T, attr unix.SchedAttr) (thread int) {
	t.Helper()
	began, ends, ended := make(chan int), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // and ends with its thread
		attr.Size = unix.SizeofSchedAttr
		if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
			t.Error(err)
		}
		began <- unix.Gettid()
		<-ends
	}()
	thread = <-began
	t.Cleanup(func() { close(ends); <-ended })
	return thread
}
