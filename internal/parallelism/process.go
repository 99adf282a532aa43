package parallelism

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// The runtimes that are known.
const (
	Go   = "go"
	JVM  = "jvm"
	Node = "node"
)

// Process is what is known of one process.
type Process struct {
	PID      int
	Name     string            // what it calls itself
	Runtime  string            // "": none that is known
	Used     time.Duration     // CPU time so far
	Threads  int               // of the kernel; 0: not known
	CPUs     int               // that it may run on; 0: not known
	Limit    float64           // CPUs, of the group that it is in itself, which is what it reads; +Inf: none
	Nested   bool              // that group is one inside the container's
	Args     []string          // nil: not known
	Env      map[string]string // the Variables that are set; nil: not known
	Go       Build
	Embedded bool // a JVM that another program than java has started
	Workers  int  // worker threads of Node; -1: not known
}

// Build is how a Go program was built.
type Build struct {
	Version      string // "go1.26.8"
	GODEBUG      string // the defaults that its module asks for
	Settings     bool   // whether the build's settings are known, GODEBUG among them
	AutoMaxProcs bool   // go.uber.org/automaxprocs is linked
}

// Variables are those of the environment that the verdict depends on. No other is looked at:
// an environment has secrets.
func Variables() []string {
	return []string{"GOMAXPROCS", "GODEBUG", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS",
		"UV_THREADPOOL_SIZE"}
}

// degree is how many threads of its own code a process runs at once.
type degree struct {
	threads int    // 0: not known
	from    string // where the number comes from, or why it is not known
	strict  bool   // no more than these run
	follows bool   // it follows a limit that changes
}

func unknown(format string, args ...any) degree { return degree{from: fmt.Sprintf(format, args...)} }

// Reasons for which a degree is not known.
const (
	noEnv  = "its environment cannot be read"
	noArgs = "its command line cannot be read"
	noCPUs = "the CPUs that it may run on are not known"
)

// degree applies the rules of a process's runtime.
func (p Process) degree() degree {
	switch p.Runtime {
	case Go:
		return p.goDegree()
	case JVM:
		return p.jvmDegree()
	}
	return p.nodeDegree()
}

// usable is how many CPUs so many threads of the process can be on at once.
func (p Process) usable(threads int) int {
	if p.CPUs > 0 {
		return min(threads, p.CPUs)
	}
	return threads
}

// roundedUp is a limit in whole CPUs; 0: there is no limit.
func roundedUp(limit float64) int {
	if math.IsInf(limit, 1) || limit <= 0 {
		return 0
	}
	return int(math.Ceil(min(limit, math.MaxInt32)))
}

// count reads a number as runtimes do: whole, above 0, and not beyond 32 bits. Anything else counts as not set.
func count(text string) int {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n <= 0 {
		return 0
	}
	return int(n)
}
