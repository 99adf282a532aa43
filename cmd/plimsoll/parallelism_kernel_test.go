package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/doctor"
	"plimsoll/internal/parallelism"
	"plimsoll/internal/report"
)

// runtimeLimit is half a CPU. With a cap of 300 % a burst is 1.5 CPUs: more than one thread can use,
// and not more than two can.
const runtimeLimit = 50 * ms

// started is a program of a runtime in a group of its own.
type started struct {
	name, script string
	parallelism  int    // as diagnose has to find it; 0: what the program itself says
	from         string // where that comes from
	set          string // "": the burst can be used
}

// runtimeNode runs programs, each with a limit of half a CPU and policy auto.
type runtimeNode struct {
	testNode
	base   *cgrouptest.Group
	config string
}

func newRuntimeNode(t *testing.T) runtimeNode {
	t.Helper()
	if runtime.NumCPU() < 2 {
		cgrouptest.Skip(t, "a burst above one CPU takes two")
	}
	r := runtimeNode{testNode{state: t.TempDir(), cgroups: cgrouptest.Root()}, cgrouptest.New(t),
		filepath.Join(t.TempDir(), "config.yaml")}
	text := fmt.Sprintf("overrides:\n  - {cgroup: %q, policy: auto, cfsQuotaBurstPercent: 300}\n", r.base.Path+"/*")
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// start runs the programs, and waits until each has written how many processors it counts,
// a number on a line of its own.
func (r runtimeNode) start(t *testing.T, list []started) {
	t.Helper()
	dir := t.TempDir()
	for _, s := range list {
		g := r.base.Child(s.name)
		g.Limit(runtimeLimit)
		g.Start(fmt.Sprintf("exec 2>&1 >%s; %s", filepath.Join(dir, s.name), s.script))
	}
	for i := range list {
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * ms) {
			said, err := os.ReadFile(filepath.Join(dir, list[i].name))
			if line, _, whole := strings.Cut(string(said), "\n"); whole {
				n, err := strconv.Atoi(line)
				if err != nil {
					t.Fatalf("%s: %s", list[i].name, said)
				}
				if list[i].parallelism == 0 {
					list[i].parallelism = n
				}
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: it says nothing: %q, %v", list[i].name, said, err)
			}
		}
	}
}

// check diagnoses the programs. What a program counts itself is what is told of it.
func (r runtimeNode) check(t *testing.T, kind string, list []started) {
	t.Helper()
	r.start(t, list)
	_, found := r.diagnose(t, r.base.Path+"/*", "--config", r.config)
	for _, s := range list {
		p := found[s.name].Parallelism
		if p == nil || len(p.Runtimes) != 1 || p.Runtimes[0].Runtime != kind || p.Limit != 0.5 || p.Burst != 1.5 ||
			p.Proposed {
			t.Errorf("%s: %+v", s.name, p)
			continue
		}
		one := p.Runtimes[0]
		if one.Parallelism == nil || *one.Parallelism != s.parallelism || !strings.Contains(one.From, s.from) {
			t.Errorf("%s: %+v, want %d by %s", s.name, one, s.parallelism, s.from)
		}
		if one.Set != s.set || p.Unusable != (p.Verdict != "") || s.set != "" && !p.Unusable {
			t.Errorf("%s: to set %q, want %q: %+v", s.name, one.Set, s.set, p)
		}
	}
}

// texts are what people read of one program: in diagnose, and in doctor.
func (r runtimeNode) texts(t *testing.T, name string) (diagnosis, judged string, s doctor.Suspects) {
	t.Helper()
	diagnosis, _, err := r.run("diagnose", r.base.Path+"/"+name, "--for", "200ms", "--config", r.config)
	if err != nil {
		t.Fatal(err)
	}
	if judged, _, err = r.run("doctor", "--config", r.config); err != nil {
		t.Fatal(err)
	}
	asJSON, _, err := r.run("doctor", "--config", r.config, "--json")
	var e doctor.Report
	if err == nil {
		err = json.Unmarshal([]byte(asJSON), &e)
	}
	if err != nil || e.Runtimes == nil {
		t.Fatalf("%v: %s", err, asJSON)
	}
	return joined(diagnosis), joined(judged), *e.Runtimes
}

// goProgram builds a program that says GOMAXPROCS and stays. lang is the Go version that its module asks for.
func goProgram(t *testing.T, lang string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/procs\n\ngo " + lang + "\n",
		"main.go": `package main

import (
	"os"
	"runtime"
	"strconv"
	"time"
)

func main() {
	os.Stdout.WriteString(strconv.Itoa(runtime.GOMAXPROCS(0)) + "\n")
	time.Sleep(time.Hour)
}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-o", "procs", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOTOOLCHAIN=local", "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "procs")
}

// TestRuntimesGo: the verdict on a Go program is what the program itself counts,
// and changes with what it was started with.
func TestRuntimesGo(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		cgrouptest.Skip(t, "%v", err)
	}
	r, program, old := newRuntimeNode(t), goProgram(t, "1.25.0"), goProgram(t, "1.24.0")
	limit := "its limit of 0.50 CPUs, rounded up, and at least 2"
	if runtime.NumCPU() == 2 {
		limit = "the CPUs that it may run on" // the same number
	}
	list := []started{
		{"one", "GOMAXPROCS=1 exec " + program, 0, "GOMAXPROCS in its environment", "GOMAXPROCS=2"},
		{"default", "exec " + program, 0, limit, ""},
		{"set", "GOMAXPROCS=2 exec " + program, 0, "GOMAXPROCS in its environment", ""},
		{"many", "GOMAXPROCS=9 exec " + program, 0, "GOMAXPROCS in its environment", ""},
		{"off", "GODEBUG=containermaxprocs=0 exec " + program, 0, "containermaxprocs=0", ""},
		{"old", "exec " + old, 0, "containermaxprocs=0", ""},
	}
	r.check(t, parallelism.Go, list)
	for i, want := range []int{1, 2, 2, 9, runtime.NumCPU(), runtime.NumCPU()} {
		if got := list[i].parallelism; got != want {
			t.Errorf("%s: the program counts %d, and the scenario wants %d", list[i].name, got, want)
		}
	}

	diagnosis, judged, s := r.texts(t, "one")
	for _, want := range []string{"parallelism: procs (process ",
		"runs Go code on 1 thread: GOMAXPROCS in its environment.",
		"A burst can give it 1.50 CPUs in a period (cfsQuotaBurstPercent: 300 % of its limit): 0.50 of them find " +
			"no thread.",
		"to do: set GOMAXPROCS=2 in the environment of procs"} {
		if !strings.Contains(diagnosis, want) {
			t.Errorf("diagnose: no %q in\n%s", want, diagnosis)
		}
	}
	if want := "- " + r.base.Path + "/one: procs (process "; !strings.Contains(judged, want) ||
		!strings.Contains(judged, "to do: set GOMAXPROCS=2") {
		t.Errorf("doctor: no %q in\n%s", want, judged)
	}
	named := func(name string) bool {
		return slices.ContainsFunc(s.List, func(one doctor.Suspect) bool { return one.Cgroup == r.base.Path+"/"+name })
	}
	if !named("one") || named("default") || named("set") || s.Looked < len(list) {
		t.Errorf("doctor names %+v", s)
	}
	if diagnosis, _, _ := r.texts(t, "set"); strings.Contains(diagnosis, "parallelism:") {
		t.Errorf("diagnose speaks of a burst that can be used:\n%s", diagnosis)
	}
}

// TestRuntimesJVM: a JVM counts its limit rounded up, and what it was told.
func TestRuntimesJVM(t *testing.T) {
	if _, err := exec.LookPath("java"); err != nil {
		cgrouptest.Skip(t, "%v; hint: make setup", err)
	}
	r, dir := newRuntimeNode(t), t.TempDir()
	source, class := filepath.Join(dir, "Count.java"), "java -Xmx64m -Xshare:auto -XX:TieredStopAtLevel=1 "
	text := `public class Count {
    public static void main(String[] args) throws Exception {
        System.out.println(Runtime.getRuntime().availableProcessors());
        Thread.sleep(3600000);
    }
}
`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("javac", "-d", dir, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := class + "-cp " + dir + " Count"
	r.check(t, parallelism.JVM, []started{
		{"limit", "exec " + run, 0, "its limit of 0.50 CPUs, rounded up", "-XX:ActiveProcessorCount=2"},
		{"told", "exec " + class + "-XX:ActiveProcessorCount=2 -cp " + dir + " Count", 0, "in its command line", ""},
		{"variable", "JDK_JAVA_OPTIONS='-Dx=y -XX:ActiveProcessorCount=3' exec " + run, 0, "in its JDK_JAVA_OPTIONS",
			""},
		{"argument", "exec " + run + " -XX:ActiveProcessorCount=2", 0, "its limit of 0.50 CPUs",
			"-XX:ActiveProcessorCount=2"},
		{"blind", "exec " + class + "-XX:-UseContainerSupport -cp " + dir + " Count", 0, "-XX:-UseContainerSupport",
			""},
	})
}

// TestRuntimesNode: JavaScript has one thread, and one more for each worker.
func TestRuntimesNode(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		cgrouptest.Skip(t, "%v; hint: make setup", err)
	}
	r := newRuntimeNode(t)
	const stay = "setTimeout(() => {}, 3600000)"
	r.check(t, parallelism.Node, []started{
		{"single", "exec node -e 'console.log(1); " + stay + "'", 0,
			"JavaScript runs on one thread; files, DNS, crypto and zlib have a pool of 4", ""},
		{"pool", "UV_THREADPOOL_SIZE=1 exec node -e 'console.log(1); " + stay + "'", 0, "a pool of 1",
			"UV_THREADPOOL_SIZE=2"},
		{"worker", `exec node -e 'const {Worker} = require("worker_threads");
			new Worker("setTimeout(() => {}, 3600000)", {eval: true}).on("online", () => console.log(2)); ` + stay + `'`, 0, "those of 1 worker", ""},
	})
	_, found := r.diagnose(t, r.base.Path+"/*", "--config", r.config)
	for name, unusable := range map[string]bool{"single": true, "pool": true, "worker": false} {
		if p := found[name].Parallelism; p == nil || p.Unusable != unusable || unusable &&
			!strings.Contains(p.Next, "in 2 processes (node:cluster) or worker threads") {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestRuntimesNone: a shell has no verdict, and neither has a Go program without a limit.
func TestRuntimesNone(t *testing.T) {
	r := newRuntimeNode(t)
	shell, free := r.base.Child("shell"), r.base.Child("free")
	shell.Limit(runtimeLimit)
	shell.Idle()
	free.Start("GOMAXPROCS=1 exec " + goProgram(t, "1.25.0"))
	_, found := r.diagnose(t, r.base.Path+"/*", "--config", r.config)
	for name, c := range found {
		if c.Parallelism != nil {
			t.Errorf("%s: %+v", name, c.Parallelism)
		}
	}
	var d report.Diagnosis
	if out, _, err := r.run("diagnose", shell.Path, "--for", "200ms", "--json"); err != nil ||
		json.Unmarshal([]byte(out), &d) != nil || strings.Contains(out, "parallelism") {
		t.Errorf("%v: %s", err, out)
	}
}
