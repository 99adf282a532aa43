package loadline_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
	"plimsoll/internal/loadline"
)

// A tick of 4 ms passes before the kernel notices that a quota is used up: the quota is ten of them.
const (
	period  = 200 * time.Millisecond
	quota   = 40 * time.Millisecond
	periods = 180
	// arrival is when a job comes, after the refill.
	arrival = time.Millisecond
)

// TestKernelFollowsModel drives groups of the running kernel with jobs of known length, one at the beginning of each of
// the group's periods: one group by itself, and five that contend for one CPU. What the kernel counted is held against
// what the model makes of the CPU time that the jobs really took.
func TestKernelFollowsModel(t *testing.T) {
	if runtime.NumCPU() < 2 {
		cgrouptest.Skip(t, "one group and five need a CPU each")
	}
	root := cgrouptest.New(t)
	cgrouptest.Need(t, root.Features().Get(cgroup.FeatureBurst))
	cpus := allowed(t)
	alone := []*driver{newDriver(t, cpus[len(cpus)-1], 0.6, 0)}
	var five []*driver
	for i := range 5 {
		five = append(five, newDriver(t, cpus[0], 0.6, i+1))
	}
	all := append(slices.Clone(alone), five...)
	for _, d := range all {
		d.start(t)
	}
	done := make(chan error)
	for _, d := range all {
		go func() { done <- d.watch() }()
	}
	var failed error
	for range all {
		failed = errors.Join(failed, <-done)
	}
	if failed != nil {
		t.Fatal(failed)
	}
	t.Run("one group", func(t *testing.T) { against(t, alone) })
	t.Run("five groups on one CPU", func(t *testing.T) { against(t, five) })
}

// driver is a group and the process that works in it.
type driver struct {
	group         *cgrouptest.Group
	cpu           int
	utilization   float64
	number        int
	files         string // of the worker, without their endings
	before, after cpu.Counters
	jobs          []job
}

// job is what became of a job: the CPU time that it took, and when it ended.
type job struct {
	Cost time.Duration
	End  time.Duration // after the refill that it came with
}

func newDriver(t *testing.T, on int, utilization float64, number int) *driver {
	t.Helper()
	g := cgrouptest.New(t)
	limit(t, g)
	if err := g.Tree().SetBurst(g.Path, quota); err != nil {
		t.Fatal(err)
	}
	heaviest := map[cgroup.Version]int64{cgroup.V1: 1 << 18, cgroup.V2: 10000}[g.Tree().Version()]
	if err := g.Tree().SetWeight(g.Path, heaviest); err != nil { // others want the CPU too
		t.Fatal(err)
	}
	return &driver{group: g, cpu: on, utilization: utilization, number: number,
		files: filepath.Join(t.TempDir(), "driver")}
}

func limit(t *testing.T, g *cgrouptest.Group) {
	t.Helper()
	dir := g.Tree().Dir(g.Path)
	write := func(file string, text ...any) {
		if err := g.Dir().WriteFile(path.Join(dir, file), []byte(fmt.Sprint(text...))); err != nil {
			t.Fatal(err)
		}
	}
	if g.Tree().Version() == cgroup.V2 {
		write("cpu.max", quota.Microseconds(), " ", period.Microseconds())
		return
	}
	write("cpu.cfs_period_us", period.Microseconds())
	write("cpu.cfs_quota_us", quota.Microseconds())
}

// start starts this test binary as the worker, on its CPU: it inherits that from the thread that starts it.
func (d *driver) start(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // Start's process dies with the thread: it stays ours to the end
	var all, one unix.CPUSet
	one.Set(d.cpu)
	if err := errors.Join(unix.SchedGetaffinity(0, &all), unix.SchedSetaffinity(0, &one)); err != nil {
		t.Fatal(err)
	}
	d.group.Start(fmt.Sprintf("%s='%s %s %v %d' GOMAXPROCS=1 GOGC=off exec '%s'",
		workerVar, d.files, d.group.File("cpu.stat"), d.utilization, d.number, self))
	if err := unix.SchedSetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
}

// watch reads the counters at the beginning and at the end of the jobs' periods, and then the jobs.
func (d *driver) watch() error {
	var begin time.Duration
	if err := await(d.files+".begin", &begin); err != nil {
		return err
	}
	tree, group := d.group.Tree(), d.group.Path
	var failed [2]error
	sleepUntil(begin - 3*time.Millisecond)
	d.before, failed[0] = tree.Counters(group)
	sleepUntil(begin + periods*period + 5*time.Millisecond)
	d.after, failed[1] = tree.Counters(group)
	return errors.Join(failed[0], failed[1], await(d.files+".jobs", &d.jobs))
}

// await reads a file that the worker makes.
func await(name string, into any) error {
	for range 1000 {
		data, err := os.ReadFile(name)
		if err == nil {
			return json.Unmarshal(data, into)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s: %w after ten seconds", name, fs.ErrNotExist)
}

// figures are what the kernel and the model both count.
type figures struct {
	Throttled, Bursts, Late int
	BurstTime               time.Duration
}

func (d *driver) counted() figures {
	f := figures{
		Throttled: int(d.after.Throttled - d.before.Throttled),
		Bursts:    int(d.after.Bursts - d.before.Bursts),
		BurstTime: d.after.BurstTime - d.before.BurstTime,
	}
	for _, j := range d.jobs {
		if j.End > period {
			f.Late++
		}
	}
	return f
}

// predicted is what the model makes of the jobs.
func predicted(list []*driver) figures {
	n := loadline.Node{Capacity: period.Seconds()}
	var demands [][]float64
	for _, d := range list {
		n.Containers = append(n.Containers, loadline.Container{Quota: quota.Seconds(), Burst: quota.Seconds()})
		var demand []float64
		for _, j := range d.jobs {
			demand = append(demand, j.Cost.Seconds())
		}
		demands = append(demands, demand)
	}
	var sum figures
	for _, a := range loadline.Play(n, demands) {
		sum.Throttled += a.Throttled
		sum.Bursts += a.Bursts
		sum.Late += a.Late
		sum.BurstTime += time.Duration(a.BurstTime * float64(time.Second))
	}
	return sum
}

func against(t *testing.T, list []*driver) {
	want, got := predicted(list), figures{}
	for _, d := range list {
		f := d.counted()
		got.Throttled += f.Throttled
		got.Bursts += f.Bursts
		got.Late += f.Late
		got.BurstTime += f.BurstTime
	}
	t.Logf("kernel %+v\nmodel  %+v", got, want)
	near := func(name string, got, want, least float64) {
		if math.Abs(got-want) > 0.1*want+least {
			t.Errorf("%s: %v by the kernel, %v by the model", name, got, want)
		}
	}
	near("nr_throttled", float64(got.Throttled), float64(want.Throttled), 5)
	near("nr_bursts", float64(got.Bursts), float64(want.Bursts), 5)
	near("late jobs", float64(got.Late), float64(want.Late), 5)
	near("burst_time", got.BurstTime.Seconds(), want.BurstTime.Seconds(), quota.Seconds())
}

func allowed(t *testing.T) []int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	var list []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	if len(list) < 2 {
		cgrouptest.Skip(t, "the test may use one CPU only")
	}
	return list
}

// workerVar makes this test binary a worker: "FILES CPU.STAT UTILIZATION NUMBER".
const workerVar = "PLIMSOLL_LOADLINE_WORKER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(workerVar); spec != "" {
		if err := work(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work does the jobs: it finds the group's refills, says when it begins, and tells in the end what became of the jobs.
func work(spec string) error {
	var files, stat string
	var utilization float64
	var number uint64
	if _, err := fmt.Sscan(spec, &files, &stat, &utilization, &number); err != nil {
		return err
	}
	runtime.LockOSThread()
	refill, err := findRefill(stat)
	if err != nil {
		return err
	}
	begin := refill + 5*period
	if err := put(files+".begin", begin); err != nil {
		return err
	}
	for at := refill + period; at < begin; at += period {
		sleepUntil(at + arrival)
		burn(100 * time.Microsecond) // keeps the period's timer running, while tokens come in
	}
	chance := rand.New(rand.NewPCG(number, 1))
	jobs := make([]job, periods)
	sleepUntil(begin - arrival)
	used := clock(unix.CLOCK_PROCESS_CPUTIME_ID)
	for i := range jobs {
		at := begin + time.Duration(i)*period
		sleepUntil(at + arrival)
		burn(time.Duration(chance.ExpFloat64() * utilization * float64(quota)))
		now := clock(unix.CLOCK_PROCESS_CPUTIME_ID)
		jobs[i] = job{Cost: now - used, End: clock(unix.CLOCK_MONOTONIC) - at}
		used = now
	}
	return put(files+".jobs", jobs)
}

// put writes a file in one step.
func put(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name+".part", data, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}

// findRefill watches the group's period timer go off, and takes the moment that was seen with the least delay.
func findRefill(stat string) (time.Duration, error) {
	var first, least time.Duration
	last := ""
	for seen := 0; seen < 6; {
		data, err := os.ReadFile(stat)
		if err != nil {
			return 0, err
		}
		now := clock(unix.CLOCK_MONOTONIC)
		line := ""
		for _, l := range strings.Split(string(data), "\n") {
			if strings.HasPrefix(l, "nr_periods ") {
				line = l
			}
		}
		if last != "" && line != last {
			if seen++; seen == 1 {
				first = now
			}
			// The delay against the first, between minus half a period and half a period.
			delay := (now-first+period/2)%period - period/2
			least = min(least, delay)
		}
		last = line
		sleepUntil(now + 200*time.Microsecond)
	}
	now := clock(unix.CLOCK_MONOTONIC)
	refill := first + least
	return refill + (now-refill)/period*period, nil
}

func burn(cost time.Duration) {
	for end := clock(unix.CLOCK_THREAD_CPUTIME_ID) + cost; clock(unix.CLOCK_THREAD_CPUTIME_ID) < end; {
	}
}

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic(err) // the clocks are there since 2.6.12
	}
	return time.Duration(ts.Nano())
}

func sleepUntil(moment time.Duration) {
	ts := unix.NsecToTimespec(int64(moment))
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil) == unix.EINTR {
	}
}
