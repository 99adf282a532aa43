// Command requests holds the response times that plimsoll measures at the sockets of a container against those that the
// clients of real servers measure, in the same run: Apache, nginx (small answers, sendfile, TLS), Go's net/http and
// memcached, each without a limit and with one that throttles. A server with HTTP/2 has to be told apart.
//
// Approach: each connection of the client is a thread of its own, which sends a request when it is due, one at a time,
// and notes how long it takes from the write to the last byte of the answer. The threads are real-time ones, so that
// they measure the server and not their own wait for a CPU. The limit is 90 % of the CPU that the server used without
// one, so that it throttles under any of the loads; each connection has one request at a time,
// so that no queue grows without end.
//
// Server and client have a CPU each, as if they were on two machines. That of the clients never idles: a host gives an
// idle CPU away, and the clients would wake late and take that for the server's time. There are rounds, for a host that
// takes a CPU away all the same does so in one of the two times.
//
// With -vm all of it is in a virtual machine with cgroup v2, whose time is counted in instructions: nothing that the
// host does is in either time. Emulated CPUs take turns, so that the clients' CPU may idle there, and turns are made
// short.
//
// Known limits: the client's time has in it what the kernel does between a write and the arrival at the other socket,
// and from the last send to the end of the last read. Of an answer of 1 MiB most is in the socket's buffer then: that
// row has no aim. In the virtual machine the client is slow to ask, to read and to decrypt.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/requests"
	"plimsoll/lab/frame"
)

type settings struct {
	frame.Settings
	length   time.Duration
	rounds   int
	seed     uint64
	only     string
	serve    bool
	vm       string // a kernel: in a virtual machine
	emulated bool   // the CPUs are
}

func usual() *settings { return &settings{length: 8 * time.Second, rounds: 3, seed: 1} }

func main() { frame.Main("requests", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.length, "seconds", "seconds of load for each server, without and with a limit, in a round")
	set.IntVar(&s.rounds, "rounds", s.rounds, "rounds; the table has that of the median deviation of each server")
	set.Uint64Var(&s.seed, "seed", s.seed, "seed of the arrivals")
	set.StringVar(&s.only, "only", "", "the one server to measure, by its name in the table")
	set.StringVar(&s.vm, "vm", "",
		"measure in a virtual machine with this kernel (6.18) and cgroup v2, whose time is counted in instructions")
	set.BoolVar(&s.emulated, "emulated", false, "the CPUs are: one client asks for half as much (of what is "+
		"compressed a quarter), its CPU may idle, and CPUs take short turns")
	set.BoolVar(&s.serve, "serve", false, "be the server of net/http (for the lab itself)")
}

// Check implements frame.Experiment.
func (s *settings) Check() error {
	return errors.Join(frame.Within("-seconds", s.length, time.Second, time.Hour),
		frame.Within("-rounds", s.rounds, 1, 99))
}

// Part is a server.
func (s *settings) Part() func() error {
	if !s.serve {
		return nil
	}
	return serve
}

const (
	// the shortest: the kernel's work for an answer takes about as long as on a real CPU
	guestInstruction = time.Nanosecond
	bootPatience     = 2 * time.Minute
	guestSlow        = 20 * time.Second // what a measurement takes there beside its load
	guestRows        = 15               // of the table
)

// Guest is a virtual machine, where that was asked for.
func (s *settings) Guest() (vm *frame.VM, script string) {
	if s.vm == "" {
		return nil, ""
	}
	return &frame.VM{Kernel: s.vm, Cgroup: "v2", CPUs: guestCPUs, Instruction: guestInstruction,
			Span:     bootPatience + time.Duration(guestRows*s.rounds)*(s.length+guestSlow),
			Programs: append(frame.ApacheFiles(), "nginx", "memcached")},
		fmt.Sprintf("./requests -plimsoll ./plimsoll -emulated -seconds %g -rounds %d -seed %d -only '%s' -json=%v "+
			"-strict=%v",
			s.length.Seconds(), s.rounds, s.seed, s.only, s.JSON, s.Strict)
}

// row is what came of one server, without or with a limit.
type row struct {
	Server    string    `json:"server"`
	Limit     float64   `json:"limit_cpus"` // 0: none
	Client    quantiles `json:"client"`
	Kernel    quantiles `json:"kernel"`
	Doubtful  int64     `json:"doubtful"`
	Overtaken int64     `json:"overtaken"`
	Withheld  bool      `json:"withheld"`
	Throttled float64   `json:"throttled"` // part of the response times
	Rest      float64   `json:"unthrottled_p99_ms"`
	Ready     float64   `json:"sk_data_ready_ns"` // of the program, its measurement included
	Send      float64   `json:"sock_send_length_ns"`
	Used      float64   `json:"used_cpus"`
	Several   bool      `json:"several"` // its connections carry several requests at a time
	Large     bool      `json:"large"`   // most of an answer is in the socket's buffer after the last send
}

// quantiles are in ms.
type quantiles struct {
	N   int64   `json:"n"`
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
}

type result struct {
	frame.Machine
	Rows []row `json:"rows"`
}

// Measure implements frame.Experiment.
func (s *settings) Measure(ctx context.Context, b *frame.Bench) (*result, error) {
	r := &result{Machine: b.Machine()}
	for i, one := range frame.Must(servers(b)) {
		if s.only != "" && s.only != one.name {
			continue
		}
		if s.emulated {
			one = one.onEmulatedCPUs()
		}
		group := frame.Must(b.Add(fmt.Sprintf("server%d", i)))
		limits := []float64{0, throttling}
		if one.several {
			limits = limits[:1]
		}
		b.Scope(ctx, func(b *frame.Bench) {
			b.Undo(one.server.Stop)
			enter := func(pid int) error { return errors.Join(b.Enter(group, pid), experiment.Bind(pid, serverCPU)) }
			frame.Check(one.server.Start(enter))
			var used float64
			for _, limit := range limits {
				var rows []row
				for round := range s.rounds {
					frame.In(one.name, func() {
						rows = append(rows, s.measure(ctx, b, one, group, limit*used, s.seed+uint64(round)))
					})
					b.Say("%s", rows[round].line())
				}
				slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.off(), b.off()) })
				r.Rows = append(r.Rows, rows[len(rows)/2])
				used = max(experiment.MedianOf(rows, func(r row) float64 { return r.Used }), leastLimit)
			}
		})
	}
	if len(r.Rows) == 0 {
		return nil, fmt.Errorf("-only %q: there is no such server", s.only)
	}
	return r, nil
}

const (
	serverCPU, clientCPU = 0, 1 // as if they were on two machines
	timerCPU, guestCPUs  = 2, 3 // of an emulated machine, see shortenTurns
	throttling           = 0.9  // a limit, as a part of the CPU that was used without one
	leastLimit           = 0.02 // a quota that the kernel takes
)

// measure loads a server, whose requests are counted meanwhile.
func (s *settings) measure(ctx context.Context, b *frame.Bench, one target, group string, limit float64,
	seed uint64) row {
	r := row{Server: one.name, Limit: limit, Several: one.several, Large: one.large}
	bandwidth := cpu.Bandwidth{Quota: cpu.Unlimited, Period: cpu.DefaultPeriod}
	if limit > 0 {
		bandwidth = experiment.Limited(limit)
	}
	frame.Check(b.Limit(group, bandwidth))
	id := frame.Must(b.Tree().Inode(group))
	clock := frame.Must(probe.Open(probe.Options{}))
	defer clock.Close()
	q := frame.Must(requests.Open(clock, requests.Options{Stats: true}))
	defer q.Close()
	frame.Check(errors.Join(clock.Watch([]uint64{id}), q.Watch([]uint64{id}), q.Start()))
	var before time.Duration
	var earlier requests.Counts
	times := frame.Must(one.load(ctx, seed, s.length, func() (err error) {
		if before, err = b.Used(group); err == nil {
			earlier, err = q.Read(id)
		}
		return err
	}))
	r.Used = (frame.Must(b.Used(group)) - before).Seconds() / s.length.Seconds()
	counts := frame.Must(q.Read(id))
	r.Client = quantiles{int64(len(times)), experiment.Milliseconds(frame.Quantile(times, 0.5)),
		experiment.Milliseconds(frame.Quantile(times, 0.99))}
	counts = counts.Since(&earlier)
	r.take(&counts)
	for _, c := range frame.Must(q.Cost()) {
		per := float64(c.Total) / float64(max(c.Runs, 1))
		switch c.Program {
		case "sk_data_ready":
			r.Ready = per
		case "sock_send_length":
			r.Send = per
		}
	}
	return r
}

// take takes over what the programs have counted.
func (r *row) take(c *requests.Counts) {
	r.Kernel = quantiles{c.Requests, experiment.Milliseconds(c.Response.Quantile(0.5)),
		experiment.Milliseconds(c.Response.Quantile(0.99))}
	r.Doubtful, r.Overtaken, r.Withheld = c.Doubtful, c.Overtaken, c.Withheld()
	r.Throttled, r.Rest = experiment.Ratio(c.Throttled, c.Time), experiment.Milliseconds(c.Rest.Quantile(0.99))
}

func (r row) line() string {
	return fmt.Sprintf("%s, limit %s: client %d requests, p50 %.3f ms, p99 %.3f ms; kernel %d, %.3f, %.3f; %d "+
		"doubtful, %d overtaken", r.Server, r.limit(), r.Client.N, r.Client.P50, r.Client.P99, r.Kernel.N, r.Kernel.P50,
		r.Kernel.P99, r.Doubtful, r.Overtaken)
}

func (r row) limit() string {
	if r.Limit == 0 {
		return "none"
	}
	return fmt.Sprintf("%.2f CPUs", r.Limit)
}

// off is how far a figure is off, of what the aim allows: 10 % and 0.1 ms.
func off(kernel, client float64) float64 { return math.Abs(kernel-client) / (0.1*client + 0.1) }

func (r row) off() float64 {
	return max(off(r.Kernel.P50, r.Client.P50), off(r.Kernel.P99, r.Client.P99))
}

// Aims implements frame.Experiment.
func (r *result) Aims() []experiment.Figure {
	var list []experiment.Figure
	for _, one := range r.Rows {
		if one.Several {
			held := 0.0
			if one.Withheld {
				held = 1
			}
			list = append(list, experiment.Figure{Name: one.Server + ": figures withheld", Value: held, AtLeast: 1,
				AtMost: 1, Measured: true})
			continue
		}
		most := 1.0
		if one.Large {
			most = 0
		}
		name := fmt.Sprintf("%s, limit %s: deviation / (10 %% + 0.1 ms)", one.Server, one.limit())
		list = append(list, experiment.Figure{Name: name, Value: one.off(), AtMost: most, Measured: !one.Withheld})
	}
	return list
}

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "Response times in ms, by the clients and by the programs in the kernel; kernel %s, cgroup %s.\n",
		r.Kernel, r.Cgroup)
	rows := [][]string{{"server", "limit", "requests", "client p50", "p99", "kernel p50", "p99", "throttled",
		"p99 without", "ns ready", "ns send"}}
	for _, one := range r.Rows {
		number := func(v float64) string {
			if one.Withheld {
				return "-"
			}
			return fmt.Sprintf("%.3f", v)
		}
		rows = append(rows, []string{one.Server, one.limit(), fmt.Sprint(one.Client.N),
			fmt.Sprintf("%.3f", one.Client.P50), fmt.Sprintf("%.3f", one.Client.P99), number(one.Kernel.P50),
			number(one.Kernel.P99), fmt.Sprintf("%.0f %%", 100*one.Throttled), number(one.Rest),
			fmt.Sprintf("%.0f", one.Ready), fmt.Sprintf("%.0f", one.Send)})
	}
	experiment.Columns(page, tabwriter.AlignRight, rows)
	frame.WriteAims(page, nil, r.Aims())
}
