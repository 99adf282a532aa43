package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"plimsoll/lab/frame"
)

func kinds() []string { return []string{"bursts", "requests", "batch"} }

// job is work for one thread.
type job struct{ at, cost time.Duration }

const (
	grain   = 5 * time.Millisecond
	threads = 2
)

// script is a load: of a runtime whose collector stops all threads now and then, of a service that is asked by many, or of a
// batch.
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
		default:
			return nil, fmt.Errorf("-load %q: %v", kind, kinds())
		}
	}
	return list, nil
}

// work does the jobs of a script, at most as many at a time as there are threads, and writes when each grain of work was done.
func work(kind string, seed uint64, length time.Duration, out string) error {
	jobs, err := script(kind, seed, length)
	if err != nil {
		return err
	}
	debug.SetGCPercent(-1)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("wait to be let into the group: %w", err)
	}
	done := make([][]time.Duration, len(jobs))
	queue, ended := make(chan int, len(jobs)), make(chan struct{})
	begin := time.Now()
	for range threads {
		go func() {
			runtime.LockOSThread()
			for i := range queue {
				for left := jobs[i].cost; left > 0; left -= grain {
					for end := frame.ThreadTime() + min(grain, left); frame.ThreadTime() < end; {
					}
					done[i] = append(done[i], time.Since(begin))
				}
			}
			ended <- struct{}{}
		}()
	}
	for i, j := range jobs {
		time.Sleep(j.at - time.Since(begin))
		queue <- i
	}
	close(queue)
	for range threads {
		<-ended
	}
	data, err := json.Marshal(slices.Concat(done...))
	if err == nil {
		err = os.WriteFile(out, data, 0o600)
	}
	time.Sleep(length - time.Since(begin))
	return err
}
