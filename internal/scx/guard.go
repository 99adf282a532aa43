package scx

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// probation is how long a fresh scheduler is watched for stalls that the kernel's watchdog would take longer to see.
const probation = 10 * time.Second

// guard watches a fresh scheduler, and takes it out of the kernel when a CPU does not run an ordinary task for too long.
// The process has a real-time priority meanwhile: it runs whatever a sched_ext scheduler does. One thread alone would not
// do, for what the others hold of Go's runtime it would wait for.
type guard struct {
	over   atomic.Bool
	done   sync.WaitGroup
	reason atomic.Pointer[string]
}

func protect(a *Attachment, most time.Duration) *guard {
	g := &guard{}
	if most <= 0 {
		return g
	}
	var w watch
	stop, err := w.start()
	if err != nil {
		lower()
		return g // the kernel's own watchdog stays
	}
	g.done.Go(func() {
		defer lower()
		defer stop()
		for end := time.Now().Add(probation); time.Now().Before(end) && !g.over.Load(); {
			time.Sleep(most / 20)
			cpu, silent := w.silent()
			if silent <= most {
				continue
			}
			why := fmt.Sprintf("CPU %d did not run an ordinary task for %v, and %v is the most that was allowed", cpu, silent.Round(time.Millisecond), most)
			g.reason.Store(&why)
			_ = a.link.Close() // whatever comes of it, the kernel's watchdog stays
			return
		}
	})
	return g
}

// why is what is known of the end of a scheduler.
func (g *guard) why() string {
	if why := g.reason.Load(); why != nil {
		return *why
	}
	return "the kernel ended it, by its watchdog or for an error: see the kernel's log (dmesg)"
}

func (g *guard) stop() {
	g.over.Store(true)
	g.done.Wait()
}

// raise gives all threads of this process a real-time priority, and lower takes it from them: what takes long, as the
// check of programs does, is not to be done with it. Where it is not allowed, the kernel's own watchdog ends a stall.
func raise() { schedule(unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 1}) }

func lower() { schedule(unix.SchedAttr{Policy: unix.SCHED_NORMAL}) }

func schedule(as unix.SchedAttr) {
	as.Size = unix.SizeofSchedAttr
	threads, _ := os.ReadDir("/proc/self/task") // without proc there is no priority
	for _, entry := range threads {
		if tid, err := strconv.Atoi(entry.Name()); err == nil {
			_ = unix.SchedSetAttr(tid, &as, 0)
		}
	}
}
