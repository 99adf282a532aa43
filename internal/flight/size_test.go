package flight

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// kind is how a container behaves: CPU time in us and throttled time in us of its next period. slept: it has none.
type kind func(r *rand.Rand, i int) (used, throttled int64, slept bool)

func idle(r *rand.Rand, _ int) (int64, int64, bool) {
	return 100 + int64(r.ExpFloat64()*500), 0, r.IntN(50) > 0
}

func ticking(r *rand.Rand, i int) (int64, int64, bool) {
	return 300 + int64(r.ExpFloat64()*100), 0, i%10 > 0
}

// http is a number of requests of 2 ms on average, under half a CPU.
func http(r *rand.Rand, _ int) (int64, int64, bool) {
	used := 0.0
	for range r.IntN(10) {
		used += r.ExpFloat64() * 2000
	}
	return limited(r, int64(used), half)
}

// batch takes all that it may.
func batch(r *rand.Rand, _ int) (int64, int64, bool) {
	return limited(r, 100_000, half)
}

// jvm has no two periods alike, over three orders of magnitude; one of seven is throttled.
func jvm(r *rand.Rand, _ int) (int64, int64, bool) {
	return limited(r, int64(200_000*r.Float64()*r.Float64()), 2*half)
}

// dense is as bad as can be: every value from nothing to two CPUs is as likely as any other,
// and every period is throttled.
func dense(r *rand.Rand, _ int) (int64, int64, bool) {
	return r.Int64N(200_000), r.Int64N(90_000), false
}

func limited(r *rand.Rand, used, quota int64) (int64, int64, bool) {
	if used <= quota {
		return used, 0, used == 0
	}
	return quota + int64(r.IntN(800)), (used - quota) * 100_000 / used, false
}

// mix is that of facts/fleet.md: 40 % idle, 10 % ticking, 30 % HTTP, 10 % batch, 10 % JVM.
func mix() []kind {
	return []kind{idle, http, idle, ticking, http, idle, batch, http, idle, jvm}
}

// fleet is what so many containers did in so many minutes.
func fleet(r *rand.Rand, kinds []kind, containers, minutes int) Batch {
	b := NewBuilder(t0)
	known := map[string]Known{}
	var list []Period
	for c := range containers {
		name := fmt.Sprintf("/kubepods.slice/kubepods-pod%032x.slice/cri-containerd-%064x.scope", r.Uint64(),
			r.Uint64())
		known[name] = Known{Namespace: fmt.Sprintf("team-%d", c%7), Pod: fmt.Sprintf("service-%d-%08x", c, r.Uint32()),
			Container: "app", Limit: 500e6 / 10, Period: 100e6}
		phase := r.Int64N(100)
		for i := range minutes * 600 {
			used, lost, slept := kinds[c%len(kinds)](r, i)
			if slept {
				continue
			}
			p := Period{Cgroup: name, End: t0.UnixMilli() + phase + int64(i)*100, Used: used, Quota: half,
				Throttled: lost, Count: 1}
			if lost > 0 {
				p.Throttles = 1
			}
			list = append(list, p)
		}
	}
	b.Know(known)
	b.Add(list)
	out, _ := b.Close(t0, true)
	return out
}

// sizes are the cases of TestSize and BenchmarkRecord. The bounds are those of the issue, in bytes a container-period.
func sizes() []struct {
	name                string
	kinds               []kind
	containers, minutes int
	most                float64
} {
	return []struct {
		name                string
		kinds               []kind
		containers, minutes int
		most                float64
	}{
		{"mix/30x10min", mix(), 30, 10, 1.0},
		{"mix/250x1min", mix(), 250, 1, 1.0},
		{"mix/250x10min", mix(), 250, 10, 1.0},
		{"jvm/250x10min", []kind{jvm}, 250, 10, 1.5},
		{"dense/30x10min", []kind{dense}, 30, 10, 0}, // beyond what is promised: no container is like that
	}
}

// TestSize: a container-period takes 1.0 byte of the mix, and 1.5 where all are JVMs.
func TestSize(t *testing.T) {
	for _, c := range sizes() {
		b := fleet(rand.New(rand.NewPCG(3, 4)), c.kinds, c.containers, c.minutes)
		each := float64(len(encoded(t, b))) / float64(c.containers*c.minutes*600)
		t.Logf("%s: %.3f bytes a container-period", c.name, each)
		if c.most > 0 && each > c.most {
			t.Errorf("%s: %.3f bytes a container-period, want %.1f at most", c.name, each, c.most)
		}
	}
}

// BenchmarkRecord is `make bench-record`: bytes and CPU time of a container-period, beside the array of numpy that
// `plimsoll record` writes (8 bytes a period, of use alone).
func BenchmarkRecord(b *testing.B) {
	for _, c := range sizes() {
		rows := fleet(rand.New(rand.NewPCG(3, 4)), c.kinds, c.containers, c.minutes)
		periods := float64(c.containers * c.minutes * 600)
		report := func(b *testing.B, bytes int, begun time.Duration) {
			b.ReportMetric(float64(bytes)/periods, "B/period")
			b.ReportMetric(float64(cpuTime(b)-begun)/float64(b.N)/periods, "cpu-ns/period")
		}
		for name, effort := range map[string]Effort{"quick": Quick, "small": Small} {
			b.Run(c.name+"/parquet-"+name, func(b *testing.B) {
				var out bytes.Buffer
				begun, e := cpuTime(b), NewEncoder(effort)
				for b.Loop() {
					out.Reset()
					if err := e.Encode(&out, rows); err != nil {
						b.Fatal(err)
					}
				}
				report(b, out.Len(), begun)
			})
		}
		b.Run(c.name+"/npy", func(b *testing.B) {
			var out []byte
			begun := cpuTime(b)
			for b.Loop() {
				out = npy(out[:0], rows, c.minutes)
			}
			report(b, len(out), begun)
		})
		b.Run(c.name+"/read", func(b *testing.B) {
			data := encoded(b, rows)
			begun := cpuTime(b)
			for b.Loop() {
				if _, err := decode(data); err != nil {
					b.Fatal(err)
				}
			}
			report(b, len(data), begun)
		})
	}
}

// cpuTime is that of this process, of all threads: a shared machine does not lengthen it as it does a wall clock's.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// npy is the content of an array of float64, without its header of 128 bytes. Minutes without a row are zeros.
func npy(out []byte, b Batch, minutes int) []byte {
	seen := map[string]int{}
	for i := range b.Rows {
		m := &b.Rows[i]
		seen[m.Cgroup]++
		for k := range 600 {
			v := 0.0
			if k < len(m.Used) {
				v = float64(m.Used[k]) / 10_000
			}
			out = binary.LittleEndian.AppendUint64(out, uint64(v))
		}
	}
	for _, n := range seen {
		out = append(out, make([]byte, max(0, minutes-n)*600*8)...)
	}
	return out
}

// BenchmarkBuild is what collecting periods into minutes costs.
func BenchmarkBuild(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	var list []Period
	known := map[string]Known{}
	for i := range 600 {
		for c := range 250 {
			used, lost, _ := http(r, i)
			name := fmt.Sprintf("/kubepods/pod%d", c)
			known[name] = Known{Period: 100 * time.Millisecond}
			list = append(list, Period{Cgroup: name, End: t0.UnixMilli() + int64(i)*100,
				Used: used, Throttled: lost, Quota: half, Count: 1})
		}
	}
	begun := cpuTime(b)
	for b.Loop() {
		build := NewBuilder(t0)
		build.Know(known)
		build.Add(list)
		build.Close(t0, true)
	}
	b.ReportMetric(float64(cpuTime(b)-begun)/float64(b.N)/float64(len(list)), "cpu-ns/period")
}
