package inspect

import (
	"context"
	"path"
	"slices"
	"strings"

	"plimsoll/internal/parallelism"
)

// Bounds of what is read.
const (
	mostProcesses = 32      // of a container
	mostText      = 1 << 20 // bytes of a file of /proc
	mostMaps      = 256 << 10
	mostThreads   = 256     // of a process, whose names are read
	mostFiles     = 1 << 14 // open ones of a process
	mostValue     = 4 << 10 // bytes of a variable
	mostBinary    = 4 << 20 // bytes of an executable that are read, not its size
)

// Group is a control group of a container: its own, or one inside it.
type Group struct {
	PIDs   []int
	Limit  float64 // CPUs; +Inf: none
	Nested bool
}

// Reader reads below a directory like /proc.
type Reader struct{ proc string }

// New is a Reader.
func New(proc string) Reader { return Reader{proc} }

// Read reads the processes of a container, and says how many it did not read: of those the container has too many, or
// the context ended first. Processes that have ended are left out.
func (r Reader) Read(ctx context.Context, groups []Group) (list []parallelism.Process, unread int) {
	type job struct {
		pid   int
		group Group
	}
	var jobs []job
	for _, g := range groups {
		for _, pid := range g.PIDs {
			if pid > 0 { // else it is in another PID namespace
				jobs = append(jobs, job{pid, g})
			} else {
				unread++
			}
		}
	}
	if more := len(jobs) - mostProcesses; more > 0 {
		jobs, unread = jobs[:mostProcesses], unread+more
	}
	results := make(chan *parallelism.Process, len(jobs)) // with room for all: the goroutine never waits for its reader
	go func() {
		for _, j := range jobs {
			if ctx.Err() != nil {
				return
			}
			results <- r.process(j.pid, j.group)
		}
	}()
	for done := range jobs {
		var p *parallelism.Process
		select {
		case p = <-results:
		case <-ctx.Done():
			select {
			case p = <-results: // read in time
			default:
				return list, unread + len(jobs) - done
			}
		}
		if p != nil {
			list = append(list, *p)
		}
	}
	return list, unread
}

// process is nil where there is none.
func (r Reader) process(pid int, g Group) *parallelism.Process {
	stat, err := r.stat(pid)
	if err != nil || stat.ended {
		return nil
	}
	p := &parallelism.Process{PID: pid, Name: stat.name, Used: stat.used, Threads: stat.threads, CPUs: r.cpus(pid),
		Limit: g.Limit, Nested: g.Nested}
	switch r.program(pid) {
	case "java":
		p.Runtime = parallelism.JVM
	case "node", "nodejs":
		p.Runtime = parallelism.Node
	default:
		if build, ok := r.build(pid); ok {
			p.Runtime, p.Go = parallelism.Go, build
		} else if r.maps(pid, "/libjvm.so") {
			p.Runtime, p.Embedded = parallelism.JVM, true
		}
	}
	switch p.Runtime {
	case "":
		return p
	case parallelism.JVM:
		p.Args = r.args(pid)
	case parallelism.Node:
		p.Workers = r.workers(pid)
	}
	p.Env = r.env(pid)
	return p
}

// args is nil where the command line cannot be read in whole.
func (r Reader) args(pid int) []string {
	data, whole := r.read(pid, "cmdline", mostText)
	if !whole || len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
}

// env has the variables that count. Of two with one name the first counts, as for getenv.
func (r Reader) env(pid int) map[string]string {
	data, whole := r.read(pid, "environ", mostText)
	if !whole {
		return nil
	}
	names, env := parallelism.Variables(), map[string]string{}
	for one := range strings.SplitSeq(string(data), "\x00") {
		name, value, ok := strings.Cut(one, "=")
		if !ok || !slices.Contains(names, name) {
			continue
		}
		if len(value) > mostValue {
			return nil
		}
		if _, there := env[name]; !there {
			env[name] = value
		}
	}
	return env
}

// maps says whether a file of this name is mapped. Of a long list only the beginning is read.
func (r Reader) maps(pid int, name string) bool {
	data, _ := r.read(pid, "maps", mostMaps)
	for line := range strings.Lines(string(data)) {
		if strings.HasSuffix(strings.TrimSuffix(line, "\n"), name) {
			return true
		}
	}
	return false
}

// program is the name of the executable's file, without the mark of one that was replaced.
func (r Reader) program(pid int) string {
	return path.Base(strings.TrimSuffix(r.link(pid, "exe"), " (deleted)"))
}
