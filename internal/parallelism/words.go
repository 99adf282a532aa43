package parallelism

import (
	"fmt"
	"strings"

	"plimsoll/internal/report"
)

// mostTold is of how many processes the verdict speaks.
const mostTold = 3

// describe says who runs on how few threads, and what of the burst that leaves unused.
func describe(v *report.Parallelism) string {
	var list []string
	for i, p := range v.Runtimes {
		if i == mostTold {
			list = append(list, fmt.Sprintf("%d more processes run on %s.", len(v.Runtimes)-i,
				threads(rest(v.Runtimes[i:]))))
			break
		}
		list = append(list, sentence(p))
	}
	who := "A burst can give it"
	if v.Proposed {
		who = "Policy auto could give it"
	}
	if len(v.Runtimes) > 1 || v.Others > 0 {
		who = strings.TrimSuffix(who, "it") + "the container"
	}
	gives := fmt.Sprintf("%s %.2f CPUs in a period (%s): %.2f of them find no thread", who, v.Burst, v.BurstFrom,
		v.Burst-float64(*v.Threads))
	switch {
	case !v.Runtimes[0].Strict:
		gives += " but what the application starts beside these pools"
	case v.Others > 0:
		gives += " but those of " + otherProcesses(v.Others)
	}
	return strings.Join(append(list, gives+"."), " ")
}

func sentence(p report.RuntimeProcess) string {
	who := fmt.Sprintf("%s (process %d, %s)", p.Name, p.PID, kind(p))
	switch p.Runtime {
	case Go:
		return fmt.Sprintf("%s runs Go code on %s: %s.", who, threads(*p.Parallelism), p.From)
	case JVM:
		return fmt.Sprintf("%s sizes its pools (GC, JIT, ForkJoinPool, most libraries) for %s: %s.", who,
			processors(*p.Parallelism), p.From)
	}
	return fmt.Sprintf("%s: %s.", who, p.From)
}

func kind(p report.RuntimeProcess) string {
	switch p.Runtime {
	case Go:
		if number, ok := strings.CutPrefix(p.Version, "go"); ok {
			return "Go " + number
		}
		return "Go"
	case JVM:
		return "JVM"
	}
	return "Node"
}

// rest is the parallelism of several processes together.
func rest(list []report.RuntimeProcess) (sum int) {
	for _, p := range list {
		sum += *p.Parallelism
	}
	return sum
}

func threads(n int) string { return plural(n, "thread") }

func processors(n int) string { return plural(n, "processor") }

func otherProcesses(n int) string {
	if n == 1 {
		return "another process"
	}
	return fmt.Sprintf("%d other processes", n)
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// set is what gives the process so many threads.
func set(p Process, n int) string {
	switch p.Runtime {
	case Go:
		return fmt.Sprintf("GOMAXPROCS=%d", n)
	case JVM:
		return fmt.Sprintf("-XX:ActiveProcessorCount=%d", n)
	}
	if p.Env != nil && p.pool() < n {
		return fmt.Sprintf("UV_THREADPOOL_SIZE=%d", n)
	}
	return ""
}

// next is what to do. What is set is said with its price.
func next(v *report.Parallelism) string {
	p := v.Runtimes[0]
	text := ""
	switch p.Runtime {
	case Go:
		text = fmt.Sprintf("set %s in the environment of %s", p.Set, p.Name)
	case JVM:
		text = fmt.Sprintf("start %s with %s (JAVA_TOOL_OPTIONS does it, too)", p.Name, p.Set)
	default:
		n := *p.Parallelism + more(v)
		text = fmt.Sprintf("run the JavaScript of %s in %d processes (node:cluster) or worker threads", p.Name, n)
		if p.Set != "" {
			text += "; " + p.Set + " where its work is in files, DNS, crypto or zlib"
		}
	}
	if v.Proposed {
		return text +
			", and let it burst (`plimsoll run --policy auto`): without bursts, more threads only use up the " +
			"limit sooner"
	}
	return text + "; while it is kept at its limit, more threads only use that up sooner"
}

// more is how many threads the burst has room for.
func more(v *report.Parallelism) int { return Burst{Most: v.Burst}.threads() - *v.Threads }
