// Package slim keeps the memory of the agent small.
package slim

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Start makes the agent small: the heap is collected before it has grown by much (percent), and at least while the
// agent gets to know the groups: what it keeps of them would lie between garbage, and a page with one object is in use.
// Memory that only the start needed (the types of the whole kernel, the code that reads them) is returned to the
// machine at once. GOGC in the environment is the user's.
func Start() {
	debug.FreeOSMemory()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(least)
		time.AfterFunc(fitEvery, func() { fit(least, 0) })
	}
	releaseProgram()
}

const (
	spare    = 4 << 20  // bytes by which the heap may grow
	most     = 12 << 20 // and where it is collected more often than once a second
	least    = 25       // percent: a large heap may grow by more, for to collect it takes the longer
	fitEvery = 10 * time.Second
)

// percent is by how much of it the heap may grow until it is collected, where so many bytes are allocated in a second.
// That of 250 containers is 6 MiB: collected at 25 %, an agent takes a third more CPU time where 100 groups are
// throttled all the time (make bench-reaction). And beside readers of the status of 1,000 pods it would be collected
// several times a second. Each time all threads are stopped,
// and the one that ends throttles waits for those that have no CPU (make bench-hostile).
func percent(live, perSecond uint64) int {
	grows := min(max(spare, perSecond), most)
	return max(least, min(100, int(100*grows/max(live, 1))))
}

// fit sets it for the heap as it is, and again by and by: containers and readers come and go.
func fit(before int, allocated uint64) {
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(heap)
	all := heap[1].Value.Uint64()
	now := percent(heap[0].Value.Uint64(), (all-allocated)/uint64(fitEvery/time.Second))
	if now != before {
		debug.SetGCPercent(now)
	}
	time.AfterFunc(fitEvery, func() { fit(now, all) })
}

// releaseProgram unmaps what is in memory of the program's file. The pages stay in the page cache, and those that are
// used again are mapped again from there.
func releaseProgram() {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for _, s := range cleanSpans(smaps, program) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_DONTNEED)
	}
}

// TidyAfter is the time without a request for the status after which the garbage of answers is collected. A program
// that scrapes metrics asks more often than that, and forces no collection.
const TidyAfter = 35 * time.Second

// Tidy frees the memory of the last answer. Beside 1,000 pods that is some 10 MiB, and an idle agent allocates so
// little that no collection would start for minutes. The buffers that encoders keep for the next answer survive the
// first collection. The code of encoders is not needed until then either.
func Tidy() {
	runtime.GC()
	debug.FreeOSMemory()
	releaseProgram()
}

// span is a part of the address space.
type span struct{ from, to uintptr }

// cleanSpans lists the parts into which a program's file is mapped and none of which can be, or was, written to: the
// file has all of it.
func cleanSpans(smaps io.Reader, program string) []span {
	var list []span
	var at span
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			at = span{}
			if len(fields) == 6 && fields[5] == program && fields[1][0] == 'r' && fields[1][1] == '-' {
				_, _ = fmt.Sscanf(fields[0], "%x-%x", &at.from, &at.to)
			}
		case len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0" && at.to > at.from:
			list = append(list, at)
		}
	}
	return list
}
