package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/lab/frame"
)

func kinds() []string { return []string{"bursts", "requests", "batch", "web", "collector"} }

// job is work for one thread.
type job struct{ at, cost time.Duration }

const (
	grain = 5 * time.Millisecond
	// collection is what a thread does in a collection: that of two is no multiple of a limit or of auto's cap. Of a
	// multiple, what clocks cost decides whether the last microseconds are throttled for most of a period.
	collection = 110 * time.Millisecond
)

// script is a load: of a runtime whose threads have much to do at once now and then, of a service with a few long
// requests, of a batch, of a service with many short requests, or of a collector that stops all threads for as long
// each time.
func script(kind string, seed uint64, length time.Duration) (list []job, err error) {
	rng := rand.New(rand.NewPCG(seed, uint64(len(kind))))
	random := func(mean time.Duration) time.Duration {
		d := min(time.Duration(rng.ExpFloat64()*float64(mean)), 4*mean)
		return max(d.Round(grain), grain)
	}
	for at := 500 * time.Millisecond; at < length-2*time.Second; {
		switch kind {
		case "bursts":
			list = append(list, job{at, random(100 * time.Millisecond)}, job{at, random(100 * time.Millisecond)})
			at += time.Second + random(500*time.Millisecond)
		case "requests":
			list = append(list, job{at, random(40 * time.Millisecond)})
			at += time.Duration(rng.ExpFloat64() * float64(time.Second) / 5)
		case "batch":
			list = append(list, job{at, time.Second})
			at += 4*time.Second + random(500*time.Millisecond)
		case "web":
			list = append(list, job{at, random(10 * time.Millisecond)})
			at += time.Duration(rng.ExpFloat64() * float64(time.Second) / 20)
		case "collector":
			list = append(list, job{at, collection}, job{at, collection})
			at += 1030 * time.Millisecond
		default:
			return nil, fmt.Errorf("-load %q: %v", kind, kinds())
		}
	}
	return list, nil
}

// work does the jobs of a script, at most as many at a time as there are threads,
// and writes when each grain of work was done.
//
// What is compared is a matter of milliseconds, and so nothing else may take the CPUs of these threads: each has one of
// its own, where the balancer would leave two on one for longer, and Go's other threads have another one. Go's
// scheduler does not interrupt a job (see perform).
func (s *settings) work() error {
	jobs, err := script(s.kind, s.seed, s.length)
	if err != nil {
		return err
	}
	cpus, err := experiment.Allowed()
	if err != nil {
		return err
	}
	debug.SetGCPercent(-1)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("wait to be let into the group: %w", err)
	}
	if err := frame.Confine(cpu.Set{cpus[s.threads%len(cpus)]}); err != nil {
		return err
	}
	awaitPhase(cpu.DefaultPeriod)
	done := make([][]time.Duration, len(jobs))
	queue, ended := make(chan int, len(jobs)), make(chan error, s.threads)
	begin := time.Now()
	origin := clock(unix.CLOCK_MONOTONIC)
	for n := range s.threads {
		go func() {
			runtime.LockOSThread()
			err := experiment.BindTo(0, cpu.Set{cpus[n%len(cpus)]})
			for i := range queue {
				done[i] = make([]time.Duration, jobs[i].cost/grain)
				perform(done[i], origin)
			}
			ended <- err
		}()
	}
	for i, j := range jobs {
		time.Sleep(j.at - time.Since(begin))
		queue <- i
	}
	close(queue)
	for range s.threads {
		err = errors.Join(err, <-ended)
	}
	if err != nil {
		return err
	}
	data, err := json.Marshal(slices.Concat(done...))
	if err == nil {
		err = os.WriteFile(s.out, data, 0o600)
	}
	time.Sleep(s.length - time.Since(begin))
	return err
}

// awaitPhase has each run begin at the same time within a period of the limit. What a burst loses hangs on where in a
// period it comes: the time lost with auto differs by half of it on the simulated kernel. The periods of a group go on
// from run to run (kernel/sched/fair.c, start_cfs_bandwidth: hrtimer_forward_now), and replay has those of the record.
func awaitPhase(period time.Duration) { time.Sleep(period - clock(unix.CLOCK_MONOTONIC)%period) }

// perform works for so many grains, and notes when each was done. It calls nothing but clocks, directly, so that Go's
// scheduler finds no place to interrupt it: it would every 10 ms,
// and give the thread its turn again only when another thread wakes it.
func perform(done []time.Duration, origin time.Duration) {
	end := clock(unix.CLOCK_THREAD_CPUTIME_ID)
	for i := range done {
		end += grain
		for clock(unix.CLOCK_THREAD_CPUTIME_ID) < end {
		}
		done[i] = clock(unix.CLOCK_MONOTONIC) - origin
	}
}

// uninterrupted is the environment in which Go does not interrupt threads: neither by signals, nor to adapt to the
// number of CPUs, for which one of its own threads would use CPU time until a job ends.
const uninterrupted = "GODEBUG=asyncpreemptoff=1,updatemaxprocs=0"

// clock reads a clock. Every kernel has these.
//
//go:nosplit
func clock(id uintptr) time.Duration {
	var t unix.Timespec
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Sec*int64(time.Second) + t.Nsec)
}
