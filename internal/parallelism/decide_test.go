package parallelism

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"plimsoll/internal/cpu"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

const ms = time.Millisecond

// goProcess is a Go service of this toolchain, on 8 CPUs and with a limit.
func goProcess(limit float64) Process {
	return Process{PID: 7, Name: "api", Runtime: Go, Used: time.Second, Threads: 9, CPUs: 8, Limit: limit,
		Env: map[string]string{},
		Go:  Build{Version: "go1.26.8", Settings: true}}
}

func jvmProcess(limit float64, args ...string) Process {
	return Process{PID: 8, Name: "java", Runtime: JVM, Used: time.Second, CPUs: 8, Limit: limit,
		Env: map[string]string{}, Args: append([]string{"java"}, args...)}
}

func nodeProcess() Process {
	return Process{PID: 9, Name: "node", Runtime: Node, Used: time.Second, CPUs: 8, Limit: 1, Env: map[string]string{}}
}

// with changes a process.
func with(p Process, change func(*Process)) Process {
	change(&p)
	return p
}

func env(p Process, name, value string) Process {
	p.Env = map[string]string{name: value}
	return p
}

// Where the number of each process comes from.
func TestDegree(t *testing.T) {
	for _, c := range []struct {
		name    string
		p       Process
		threads int    // 0: not known
		from    string // a part of it
	}{
		{"Go, half a CPU", goProcess(0.5), 2, "its limit of 0.50 CPUs, rounded up, and at least 2"},
		{"Go, rounded up", goProcess(2.1), 3, "rounded up"},
		{"Go, whole CPUs", goProcess(3), 3, "its limit of 3.00 CPUs"},
		{"Go, limit above the machine", goProcess(12), 8, allCPUs},
		{"Go, no limit", goProcess(math.Inf(1)), 8, allCPUs},
		{"Go, bound to one CPU", with(goProcess(0.5), func(p *Process) { p.CPUs = 1 }), 1, allCPUs},
		{"Go, the variable", env(goProcess(0.5), "GOMAXPROCS", "6"), 6, "GOMAXPROCS in its environment"},
		{"Go, the variable is 0", env(goProcess(0.5), "GOMAXPROCS", "0"), 2, "its limit"},
		{"Go, the variable is no number", env(goProcess(0.5), "GOMAXPROCS", "4x"), 2, "its limit"},
		{"Go, the variable is negative", env(goProcess(0.5), "GOMAXPROCS", "-4"), 2, "its limit"},
		{"Go, the variable is too large", env(goProcess(0.5), "GOMAXPROCS", "4294967298"), 2, "its limit"},
		{"Go 1.24", with(goProcess(0.5), func(p *Process) { p.Go.Version = "go1.24.13" }), 8, allCPUs},
		{"Go 1.25", with(goProcess(0.5), func(p *Process) { p.Go.Version = "go1.25" }), 2, "its limit"},
		{"Go, a candidate", with(goProcess(0.5), func(p *Process) { p.Go.Version = "go1.25rc1" }), 2, "its limit"},
		{"Go, development", with(goProcess(0.5), func(p *Process) { p.Go.Version = "devel go1.27-abcdef Mon" }), 2,
			"its limit"},
		{"Go, old development", with(goProcess(0.5), func(p *Process) { p.Go.Version = "devel go1.24-abcdef Mon" }), 8,
			allCPUs},
		{"Go, experiments", with(goProcess(0.5), func(p *Process) { p.Go.Version = "go1.26.1 X:jsonv2" }), 2,
			"its limit"},
		{"Go, version is nonsense", with(goProcess(0.5), func(p *Process) { p.Go.Version = "(devel)" }), 8, allCPUs},
		{"Go, an old module", with(goProcess(0.5), func(p *Process) {
			p.Go.GODEBUG = "containermaxprocs=0,updatemaxprocs=0"
		}), 8, "containermaxprocs=0"},
		{"Go, an old module that is told to",
			env(with(goProcess(0.5), func(p *Process) { p.Go.GODEBUG = "containermaxprocs=0" }), "GODEBUG",
				"x=1,containermaxprocs=1"), 2, "its limit"},
		{"Go, switched off", env(goProcess(0.5), "GODEBUG", "containermaxprocs=1,containermaxprocs=0"), 8,
			"containermaxprocs=0"},
		{"Go without modules", with(goProcess(0.5), func(p *Process) { p.Go.Settings = false }), 0,
			"built without modules"},
		{"Go without modules, told to", env(with(goProcess(0.5), func(p *Process) { p.Go.Settings = false }), "GODEBUG",
			"containermaxprocs=1"), 2, "its limit"},
		{"Go, automaxprocs", with(goProcess(3.5), func(p *Process) { p.Go.AutoMaxProcs = true }), 3, "probably"},
		{"Go, automaxprocs, half a CPU", with(goProcess(0.5), func(p *Process) { p.Go.AutoMaxProcs = true }), 1,
			"probably"},
		{"Go, automaxprocs honours the variable",
			env(with(goProcess(3.5), func(p *Process) { p.Go.AutoMaxProcs = true }), "GOMAXPROCS", "5"), 5,
			"environment"},
		{"Go, no environment", with(goProcess(0.5), func(p *Process) { p.Env = nil }), 0, noEnv},
		{"Go, no CPUs", with(goProcess(0.5), func(p *Process) { p.CPUs = 0 }), 0, noCPUs},

		{"JVM, half a CPU", jvmProcess(0.5, "-jar", "x.jar"), 1, "its limit of 0.50 CPUs, rounded up"},
		{"JVM, rounded up", jvmProcess(2.01, "Main"), 3, "rounded up"},
		{"JVM, limit above the machine", jvmProcess(9, "Main"), 8, allCPUs},
		{"JVM, told", jvmProcess(0.5, "-XX:ActiveProcessorCount=4", "-jar", "x.jar"), 4, "command line"},
		{"JVM, told twice", jvmProcess(0.5, "-XX:ActiveProcessorCount=4", "-XX:ActiveProcessorCount=3", "Main"), 3,
			"command line"},
		{"JVM, told by default", jvmProcess(0.5, "-XX:ActiveProcessorCount=-1", "Main"), 1, "its limit"},
		{"JVM, an argument of the program", jvmProcess(0.5, "-jar", "x.jar", "-XX:ActiveProcessorCount=4"), 1,
			"its limit"},
		{"JVM, an archive with a dash", jvmProcess(0.5, "-jar", "-x.jar", "-XX:ActiveProcessorCount=4"), 1,
			"its limit"},
		{"JVM, an argument of the class", jvmProcess(0.5, "-cp", "-XX:ActiveProcessorCount=5", "Main",
			"-XX:ActiveProcessorCount=4"), 1, "its limit"},
		{"JVM, after the class path", jvmProcess(0.5, "-cp", "a:b", "-XX:ActiveProcessorCount=4", "Main"), 4,
			"command line"},
		{"JVM, tool options", env(jvmProcess(0.5, "Main"), "JAVA_TOOL_OPTIONS", `-Dx="a b" -XX:ActiveProcessorCount=4`),
			4, "JAVA_TOOL_OPTIONS"},
		{"JVM, quoted away", env(jvmProcess(0.5, "Main"), "JAVA_TOOL_OPTIONS", `"-Dx=a -XX:ActiveProcessorCount=4"`), 1,
			"its limit"},
		{"JVM, the command line is later", env(jvmProcess(0.5, "-XX:ActiveProcessorCount=2", "Main"),
			"JAVA_TOOL_OPTIONS", "-XX:ActiveProcessorCount=4"), 2, "command line"},
		{"JVM, launcher's variable", env(jvmProcess(0.5, "Main"), "JDK_JAVA_OPTIONS", "-XX:ActiveProcessorCount=4"), 4,
			"JDK_JAVA_OPTIONS"},
		{"JVM, the last variable", env(jvmProcess(0.5, "-XX:ActiveProcessorCount=2", "Main"), "_JAVA_OPTIONS",
			"-XX:ActiveProcessorCount=4"), 4, "_JAVA_OPTIONS"},
		{"JVM, blind", jvmProcess(0.5, "-XX:-UseContainerSupport", "Main"), 8, "-XX:-UseContainerSupport"},
		{"JVM, blind and told", jvmProcess(0.5, "-XX:-UseContainerSupport", "-XX:ActiveProcessorCount=3", "Main"), 3,
			"command line"},
		{"JVM, seeing again", jvmProcess(0.5, "-XX:-UseContainerSupport", "-XX:+UseContainerSupport", "Main"), 1,
			"its limit"},
		{"JVM, GC threads alone", jvmProcess(0.5, "-XX:ParallelGCThreads=6", "Main"), 1, "its limit"},
		{"JVM, a file of arguments", jvmProcess(0.5, "@/app/args", "Main"), 0, "from a file"},
		{"JVM, a file and then told", jvmProcess(0.5, "@/app/args", "-XX:ActiveProcessorCount=3", "Main"), 3,
			"command line"},
		{"JVM, told and then a file", jvmProcess(0.5, "-XX:ActiveProcessorCount=3", "-XX:VMOptionsFile=x", "Main"), 0,
			"from a file"},
		{"JVM, an at sign of the program", jvmProcess(0.5, "Main", "@x"), 1, "its limit"},
		{"JVM, started by another program", with(jvmProcess(0.5, "Main"), func(p *Process) { p.Embedded = true }), 0,
			"another program"},
		{"JVM, another program and told", env(with(jvmProcess(0.5), func(p *Process) { p.Embedded = true }),
			"_JAVA_OPTIONS", "-XX:ActiveProcessorCount=3"), 3, "_JAVA_OPTIONS"},
		{"JVM, no command line", with(jvmProcess(0.5), func(p *Process) { p.Args = nil }), 0, noArgs},
		{"JVM, no environment", with(jvmProcess(0.5, "Main"), func(p *Process) { p.Env = nil }), 0, noEnv},
		{"JVM, no CPUs", with(jvmProcess(0.5, "Main"), func(p *Process) { p.CPUs = 0 }), 0, noCPUs},
		{"JVM in a group of its own", with(jvmProcess(0.5, "Main"), func(p *Process) { p.Nested = true }), 0,
			"inside the container's"},

		{"Node", nodeProcess(), 1, "JavaScript runs on one thread; files, DNS, crypto and zlib have a pool of 4"},
		{"Node, workers", with(nodeProcess(), func(p *Process) { p.Workers = 3 }), 4, "those of 3 workers"},
		{"Node, one worker", with(nodeProcess(), func(p *Process) { p.Workers = 1 }), 2, "those of 1 worker;"},
		{"Node, workers that are not counted", with(nodeProcess(), func(p *Process) { p.Workers = -1 }), 0,
			"cannot be counted"},
		{"Node, a pool", env(nodeProcess(), "UV_THREADPOOL_SIZE", "16"), 1, "a pool of 16"},
		{"Node, a pool of 0", env(nodeProcess(), "UV_THREADPOOL_SIZE", "0"), 1, "a pool of 1"},
		{"Node, a pool of words", env(nodeProcess(), "UV_THREADPOOL_SIZE", "many"), 1, "a pool of 1"},
		{"Node, a pool of words behind", env(nodeProcess(), "UV_THREADPOOL_SIZE", " 12x"), 1, "a pool of 12"},
		{"Node, a pool that is too large", env(nodeProcess(), "UV_THREADPOOL_SIZE", "99999"), 1, "a pool of 1024"},
		{"Node, a pool below 0", env(nodeProcess(), "UV_THREADPOOL_SIZE", "-1"), 1, "a pool of 1024"},
		{"Node, a number without end", env(nodeProcess(), "UV_THREADPOOL_SIZE", strings.Repeat("9", 40)), 1,
			"a pool of 1024"},
		{"Node, no environment", with(nodeProcess(), func(p *Process) { p.Env = nil }), 1,
			"JavaScript runs on one thread"},
	} {
		if d := c.p.degree(); d.threads != c.threads || !strings.Contains(d.from, c.from) {
			t.Errorf("%s: %d by %q, want %d by %q", c.name, d.threads, d.from, c.threads, c.from)
		}
	}
}

// What a strategy lets a container use at most.
func TestMost(t *testing.T) {
	limit := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}
	all := strategy.Default()
	policy := func(p strategy.Policy, burst, quota int64) strategy.Strategy {
		s := all
		s.Policy, s.CPUBurstPercent, s.CFSQuotaBurstPercent = p, burst, quota
		return s
	}
	for _, c := range []struct {
		name    string
		s       strategy.Strategy
		inForce time.Duration
		cpus    int
		want    Burst
	}{
		{"auto", policy(strategy.Auto, 1000, 300), 0, 8, Burst{1.5, "cfsQuotaBurstPercent: 300 % of its limit", false}},
		{"auto on one CPU", policy(strategy.Auto, 1000, 300), 0, 1,
			Burst{1, "cfsQuotaBurstPercent: 300 % of its limit; it may use 1 CPUs", false}},
		{"a cap below the burst", policy(strategy.Auto, 1000, 150), 0, 8,
			Burst{1, "cpuBurstPercent: 1000 % of its limit, at most as much again", false}},
		{"burst alone", policy(strategy.CPUBurstOnly, 50, 300), 0, 8,
			Burst{0.75, "cpuBurstPercent: 50 % of its limit, at most as much again", false}},
		{"quota alone", policy(strategy.CFSQuotaBurstOnly, 1000, 400), 0, 8,
			Burst{2, "cfsQuotaBurstPercent: 400 % of its limit", false}},
		{"a burst above the quota (Alibaba Cloud Linux)", policy(strategy.CPUBurstOnly, 1000, 300), 500 * ms, 8,
			Burst{5.5, "the burst in its file", false}},
		{"somebody else's burst", policy(strategy.None, 1000, 300), 25 * ms, 8,
			Burst{0.75, "the burst in its file", false}},
		{"nobody bursts it", policy(strategy.None, 1000, 300), 0, 8,
			Burst{1.5, "cfsQuotaBurstPercent: 300 % of its limit", true}},
	} {
		if got := Most(limit, c.s, c.inForce).On(c.cpus); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// The verdict on a container.
func TestDecide(t *testing.T) {
	other := Process{PID: 1, Name: "nginx", Used: 100 * ms, CPUs: 8, Limit: 0.5}
	burst := func(cpus float64) Burst { return Burst{Most: cpus, From: "the cap"} }
	known := func(n int) *int { return &n }
	for _, c := range []struct {
		name     string
		c        Container
		threads  *int
		unusable bool
		next     string // a part of it
	}{
		{"Go, half a CPU of 4", Container{Limit: 0.5, Burst: burst(4), Processes: []Process{goProcess(0.5)}}, known(2),
			true, "GOMAXPROCS=4 in the environment of api"},
		{"the burst in whole threads", Container{Limit: 0.5, Burst: burst(2.6), Processes: []Process{goProcess(0.5)}},
			known(2), true, "GOMAXPROCS=3"},
		{"enough", Container{Limit: 0.5, Burst: burst(2), Processes: []Process{goProcess(0.5)}}, known(2), false, ""},
		{"hardly any more", Container{Limit: 0.5, Burst: burst(2.2), Processes: []Process{goProcess(0.5)}}, known(2),
			false, ""},
		{"a tenth more", Container{Limit: 0.5, Burst: burst(2.25), Processes: []Process{goProcess(0.5)}}, known(2),
			true, "GOMAXPROCS=3"},
		{"set as advised", Container{Limit: 0.5, Burst: burst(4),
			Processes: []Process{env(goProcess(0.5), "GOMAXPROCS", "4")}}, known(4), false, ""},
		{"fewer than its limit", Container{Limit: 4, Burst: burst(8),
			Processes: []Process{env(goProcess(4), "GOMAXPROCS", "1")}}, known(1), true, "GOMAXPROCS=8"},
		{"more threads than it has CPUs", Container{Limit: 0.5, Burst: burst(4),
			Processes: []Process{with(env(goProcess(0.5), "GOMAXPROCS", "16"), func(p *Process) { p.CPUs = 2 })}},
			known(2), true, "GOMAXPROCS"},
		{"JVM", Container{Limit: 0.5, Burst: burst(1.5), Processes: []Process{jvmProcess(0.5, "Main")}}, known(1), true,
			"-XX:ActiveProcessorCount=2 (JAVA_TOOL_OPTIONS"},
		{"JVM as advised", Container{Limit: 0.5, Burst: burst(1.5),
			Processes: []Process{jvmProcess(0.5, "-XX:ActiveProcessorCount=2", "Main")}}, known(2), false, ""},
		{"Node", Container{Limit: 1, Burst: burst(3), Processes: []Process{nodeProcess()}}, known(1), true,
			"in 3 processes (node:cluster) or worker threads; while"},
		{"Node, a small pool", Container{Limit: 1, Burst: burst(6), Processes: []Process{nodeProcess()}}, known(1),
			true, "UV_THREADPOOL_SIZE=6 where its work is in files"},
		{"Node, a cluster", Container{Limit: 1, Burst: burst(3),
			Processes: []Process{nodeProcess(), nodeProcess(), nodeProcess()}}, known(3), false, ""},
		{"Node, some workers", Container{Limit: 1, Burst: burst(5),
			Processes: []Process{nodeProcess(), with(nodeProcess(), func(p *Process) { p.Workers = 1 })}}, known(3),
			true, "in 3 processes"},
		{"two runtimes together", Container{Limit: 0.5, Burst: burst(3),
			Processes: []Process{goProcess(0.5), jvmProcess(0.5, "Main")}}, known(3), false, ""},
		{"the busiest is told", Container{Limit: 0.5, Burst: burst(6),
			Processes: []Process{goProcess(0.5), with(jvmProcess(0.5, "Main"),
				func(p *Process) { p.Used = time.Minute })}}, known(3), true, "-XX:ActiveProcessorCount=4"},
		{"a helper beside it", Container{Limit: 0.5, Burst: burst(4), Processes: []Process{other, goProcess(0.5)}},
			known(2), true, "GOMAXPROCS=4"},
		{"the helper is the load", Container{Limit: 0.5, Burst: burst(4),
			Processes: []Process{with(other, func(p *Process) { p.Used = 2 * time.Second }), goProcess(0.5)}}, known(2),
			false, ""},
		{"one is not known", Container{Limit: 0.5, Burst: burst(4),
			Processes: []Process{goProcess(0.5), with(goProcess(0.5), func(p *Process) { p.Env = nil })}}, nil, false,
			""},
		{"not all were read", Container{Limit: 0.5, Burst: burst(4), Processes: []Process{goProcess(0.5)}, Unread: 1},
			nil, false, ""},
	} {
		v := Decide(c.c)
		if v == nil {
			t.Errorf("%s: no verdict", c.name)
			continue
		}
		if (v.Threads == nil) != (c.threads == nil) || v.Threads != nil && *v.Threads != *c.threads ||
			v.Unusable != c.unusable {
			t.Errorf("%s: %+v, want %v threads, unusable %v", c.name, v, c.threads, c.unusable)
		}
		if (v.Verdict != "") != c.unusable || (v.Next != "") != c.unusable || !strings.Contains(v.Next, c.next) {
			t.Errorf("%s: %q, next %q, want %q", c.name, v.Verdict, v.Next, c.next)
		}
	}
	for name, c := range map[string]Container{
		"no limit":   {Limit: math.Inf(1), Processes: []Process{goProcess(math.Inf(1))}},
		"no runtime": {Limit: 0.5, Burst: burst(4), Processes: []Process{other}},
		"nobody":     {Limit: 0.5, Burst: burst(4)},
	} {
		if v := Decide(c); v != nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// The words, in whole.
func TestWords(t *testing.T) {
	cap4 := Burst{Most: 4, From: "cfsQuotaBurstPercent: 800 % of its limit"}
	several := []Process{goProcess(0.5), jvmProcess(0.5, "Main"), nodeProcess(), nodeProcess(), nodeProcess()}
	for name, c := range map[string]struct {
		c             Container
		verdict, next string
	}{
		"Go": {Container{Limit: 0.5, Burst: cap4, Processes: []Process{goProcess(0.5)}},
			"api (process 7, Go 1.26.8) runs Go code on 2 threads: its limit of 0.50 CPUs, rounded up, and at least " +
				"2 (Go 1.25 and later), as it is raised and lowered. A burst can give it 4.00 CPUs in a period " +
				"(cfsQuotaBurstPercent: 800 % of its limit): 2.00 of them find no thread.",
			"set GOMAXPROCS=4 in the environment of api; while it is kept at its limit, more threads only use that " +
				"up sooner"},
		"JVM, proposed": {Container{Limit: 0.5, Burst: Burst{Most: 1.5, From: "the cap", Proposed: true},
			Processes: []Process{jvmProcess(0.5, "Main")}},
			"java (process 8, JVM) sizes its pools (GC, JIT, ForkJoinPool, most libraries) for 1 processor: its " +
				"limit of 0.50 CPUs, rounded up. " +
				"Policy auto could give it 1.50 CPUs in a period (the cap): 0.50 of them find no thread but what " +
				"the application starts beside these pools.",
			"start java with -XX:ActiveProcessorCount=2 (JAVA_TOOL_OPTIONS does it, too), and let it burst " +
				"(`plimsoll run --policy auto`): " +
				"without bursts, more threads only use up the limit sooner"},
		"Node beside another": {Container{Limit: 1, Burst: cap4,
			Processes: []Process{nodeProcess(), {PID: 1, Name: "sh"}}},
			"node (process 9, Node): JavaScript runs on one thread; files, DNS, crypto and zlib have a pool of 4. " +
				"A burst can give the container 4.00 CPUs in a period (cfsQuotaBurstPercent: 800 % of its limit): " +
				"3.00 of them find no thread but those of another process.",
			"run the JavaScript of node in 4 processes (node:cluster) or worker threads; while it is kept at its " +
				"limit, more threads only use that up sooner"},
		"several": {Container{Limit: 0.5, Burst: Burst{Most: 8, From: "the cap"}, Processes: several},
			"api (process 7, Go 1.26.8) runs Go code on 2 threads: its limit of 0.50 CPUs, rounded up, and at least " +
				"2 (Go 1.25 and later), as it is raised and lowered. java (process 8, JVM) sizes its pools (GC, JIT, " +
				"ForkJoinPool, most libraries) for 1 processor: its limit of 0.50 CPUs, rounded up. node (process 9, " +
				"Node): JavaScript runs on one thread; files, DNS, crypto and zlib have a pool of 4. 2 more " +
				"processes run on 2 threads. A burst can give the container 8.00 CPUs in a period (the cap): 2.00 of " +
				"them find no thread.", "set GOMAXPROCS=4 in the environment of api; while it is kept at its limit, " +
				"more threads only use that up sooner"},
	} {
		v := Decide(c.c)
		if v.Verdict != c.verdict || v.Next != c.next {
			t.Errorf("%s:\n%s\nwant\n%s\nnext: %s\nwant  %s", name, v.Verdict, c.verdict, v.Next, c.next)
		}
	}
}

// What a tenant chooses is shown without control characters, and not at length.
func TestHostileNames(t *testing.T) {
	p := goProcess(0.5)
	p.Name, p.Go.Version = "\x1b[2J\u202eevil\nnode 2: fine", "go1.26\x1b]0;x\a"+strings.Repeat("9", 5000)
	v := Decide(Container{Limit: 0.5, Burst: Burst{Most: 4, From: "x"}, Processes: []Process{p}})
	for _, text := range append(texts(v), v.Verdict, v.Next) {
		if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || len(text) > 600 {
			t.Errorf("%d bytes: %.200q", len(text), text)
		}
	}
}

func texts(v *report.Parallelism) (list []string) {
	for _, r := range v.Runtimes {
		list = append(list, r.Name, r.Version, r.From, r.Set)
	}
	return list
}

// Whatever a tenant gives as options is read in one pass, and gives a number that a process may have.
func FuzzOptions(f *testing.F) {
	f.Add("-XX:ActiveProcessorCount=4", "-cp\x00x\x00Main", "@x", true)
	f.Add(`"-XX:Flags=x' -XX:ActiveProcessorCount=`, "", "-XX:-UseContainerSupport", false)
	f.Fuzz(func(t *testing.T, tool, args, last string, embedded bool) {
		p := jvmProcess(0.5, strings.Split(args, "\x00")...)
		p.Env = map[string]string{"JAVA_TOOL_OPTIONS": tool, "JDK_JAVA_OPTIONS": last, "_JAVA_OPTIONS": last,
			"UV_THREADPOOL_SIZE": last}
		p.Embedded = embedded
		if d := p.degree(); d.threads < 0 || d.from == "" {
			t.Errorf("%+v", d)
		}
		if n := p.pool(); n < 1 || n > largestPool {
			t.Errorf("a pool of %d", n)
		}
	})
}
