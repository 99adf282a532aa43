package requests

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/responsetime"
)

// TestKernelThrottledPart: of requests that a limit slows down a part is throttled, and of those before it was set none. Those
// of the first request are not known: nobody has answered at the port before.
func TestKernelThrottledPart(t *testing.T) {
	g := cgrouptest.New(t)
	address := server(t, g)
	read := follow(t, open(t, Options{}), g)
	get(t, address, "/spin?us=3000", 20)
	free := settled(read, 20)
	if r := responsetime.Judge(free, time.Second); r.Throttled == nil || r.Throttled.N != 19 || *r.ThrottledShare != 0 {
		t.Errorf("without a limit: %+v, %+v", r, r.Throttled)
	}
	g.Limit(10 * ms)
	took := get(t, address, "/spin?us=30000", 12) // 3 periods each
	limited := settled(read, 32).Since(free)
	r := responsetime.Judge(limited, time.Second)
	var all time.Duration
	for _, d := range took {
		all += d
	}
	// Each period has 10 ms of running, and most of the rest is throttled; a busy machine takes some of it.
	if r.Throttled == nil || r.Throttled.N != 12 || limited.Kept < all/2 || limited.Kept > all || limited.Total > all+10*ms {
		t.Errorf("%v in all, %v throttled of %v: %+v", all, limited.Kept, limited.Total, r.Throttled)
	}
}

// TestKernelMatchesTheClient: p50 and p99 are those of the client, within 10 % and 0.1 ms, without a limit and with one
// that throttles.
func TestKernelMatchesTheClient(t *testing.T) {
	for name, limit := range map[string]time.Duration{"free": 0, "limited": 20 * ms} {
		t.Run(name, func(t *testing.T) {
			g := cgrouptest.New(t)
			g.Prevail()
			address := server(t, g)
			if limit > 0 {
				g.Limit(limit)
			}
			read := follow(t, open(t, Options{}), g)
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			const n = 400
			var took []time.Duration
			for range n {
				took = append(took, ask(t, c, "/spin?us=3000", 1)...)
				time.Sleep(5 * ms)
			}
			c.Close()
			r := responsetime.Judge(settled(read, n), time.Second)
			if r.N != n || r.Withheld != "" {
				t.Fatalf("%+v", r)
			}
			slices.Sort(took)
			for _, q := range []struct {
				name         string
				ours, theirs time.Duration
			}{{"p50", *r.Response.P50, took[n/2-1]}, {"p99", *r.Response.P99, took[n*99/100-1]}} {
				t.Logf("%s: client %v, kernel %v", q.name, q.theirs, q.ours)
				if (q.ours - q.theirs).Abs() > q.theirs/10+100*time.Microsecond {
					t.Errorf("%s: client %v, kernel %v", q.name, q.theirs, q.ours)
				}
			}
			if throttled := *r.ThrottledShare > 0.05; throttled != (limit > 0) {
				t.Errorf("%.3f of the times are throttled", *r.ThrottledShare)
			}
		})
	}
}

// TestKernelForgets: a group that is let go of counts no more, and its place is another's, from zero.
func TestKernelForgets(t *testing.T) {
	a, b := cgrouptest.New(t), cgrouptest.New(t)
	first, second := server(t, a), server(t, b)
	p := open(t, Options{Groups: 1})
	read := follow(t, p, a)
	get(t, first, "/sleep?us=100", 5)
	before := settled(read, 5)
	one, err := a.Tree().Inode(a.Path)
	if err != nil {
		t.Fatal(err)
	}
	two, err := b.Tree().Inode(b.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Set(two); err == nil {
		t.Error("a full table took a group")
	}
	if err := p.Forget(one); err != nil {
		t.Fatal(err)
	}
	if err := p.Set(two); err != nil {
		t.Fatal(err)
	}
	get(t, first, "/sleep?us=100", 5)
	get(t, second, "/sleep?us=100", 3)
	after := settled(func() responsetime.Counts {
		c, err := p.Read(two)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}, before.Answered()+3)
	if got := after.Since(before).Answered(); got != 3 {
		t.Errorf("%d requests, want 3", got)
	}
	if _, err := p.Read(one); err == nil {
		t.Error("a group that was let go of is read")
	}
}

// TestKernelTracepoints: a kernel without one of the tracepoints is told from one that refuses the programs.
func TestKernelTracepoints(t *testing.T) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		cgrouptest.Skip(t, "%v", err)
	}
	kernel = kernel.Copy()
	var named *btf.Typedef
	if err := kernel.TypeByName("btf_trace_sock_send_length", &named); err != nil {
		cgrouptest.Elsewhere(t, "tier vm, on 6.12", "%v", err)
	}
	if err := tracepoints(kernel); err != nil {
		t.Error(err)
	}
	named.Name = "btf_trace_other"
	if err := tracepoints(kernel); err == nil {
		t.Error("a missing tracepoint is not noticed")
	}
}

// What the programs cost a call, by the kernel's figure, its measuring included: one connection, one request after the other.
//
//	go test -run '^$' -bench Call -benchtime 50000x ./internal/probe/requests
func BenchmarkCall(b *testing.B) {
	g := cgrouptest.New(b)
	address := server(b, g)
	p := open(b, Options{Stats: true})
	follow(b, p, g)
	b.ResetTimer()
	get(b, address, "/sleep?us=0", b.N)
	costs, err := p.Cost()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range costs {
		if c.Runs > 0 {
			b.ReportMetric(float64(c.Total)/float64(c.Runs), "ns/"+c.Program)
		}
	}
}
