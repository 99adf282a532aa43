package probe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/probe/probetest"
)

// A program that the kernel refuses disables its own part, and no other: throttles are reported all the same.
func TestEachPartIsRefused(t *testing.T) {
	broken := asm.Instructions{asm.LoadMem(asm.R0, asm.R10, 8, asm.DWord), asm.Return()} // above the stack
	for _, c := range []struct {
		programs []string
		missing  []string
	}{
		{[]string{kernelProgSchedStatRuntime}, []string{PartForecast}},
		{[]string{kernelProgHrtimerExpireEntry}, []string{PartPeriods}},
		{[]string{kernelProgSchedWakeup}, []string{PartWakeups}},
		{[]string{kernelProgSchedWakeupNew}, []string{PartWakeups}},
		{[]string{kernelProgSchedMigrateTask}, []string{PartWakeups}},
		{[]string{kernelProgSchedWakeup, kernelProgSchedWakeupNew}, []string{PartWakeups}}, // of the same code
	} {
		names := strings.Join(c.programs, ",")
		t.Run(names, func(t *testing.T) {
			if slices.Contains(c.missing, PartWakeups) && oneByOne(kernelTypes) {
				cgrouptest.Elsewhere(t, "tier vm, on 5.10 to 6.12", "a switch shows all here, and %s is not loaded",
					names)
			}
			checkParts(t, Options{Use: true, Ahead: true, change: func(spec *ebpf.CollectionSpec) {
				for _, name := range c.programs {
					spec.Programs[name].Instructions = broken
				}
			}}, c.missing)
		})
	}
}

// So does a field that a kernel does not have.
func TestEachPartWithoutAField(t *testing.T) {
	for _, c := range []struct {
		record, field string
		missing       []string
	}{
		{"sched_entity", "exec_start", []string{PartForecast}},
		{"hrtimer", "function", []string{PartPeriods}},
		{"sched_entity", "sum_exec_runtime", []string{PartBalance, PartForecast, PartPeriods}},
		{"cfs_bandwidth", "runtime", []string{PartForecast, PartWakeups}},
	} {
		t.Run(c.record+"."+c.field, func(t *testing.T) {
			if oneByOne(kernelTypes) {
				c.missing = slices.DeleteFunc(c.missing, func(part string) bool { return part == PartWakeups })
			}
			checkParts(t, Options{Use: true, Ahead: true, kernel: without(t, c.record, c.field)}, c.missing)
		})
	}
	t.Run("what all needs", func(t *testing.T) {
		p, err := Open(Options{Use: true, Ahead: true, kernel: without(t, "cfs_rq", "throttle_count"),
			types: kernelTypes})
		if err == nil {
			_ = p.Close()
			t.Fatal("opened without cfs_rq.throttle_count")
		}
		if Explain(err) == "" {
			t.Errorf("no hint: %v", err)
		}
	})
}

// checkParts checks that these parts are missing, with what is lost and why, and that throttles are reported.
func checkParts(t *testing.T, o Options, want []string) {
	t.Helper()
	o.types = kernelTypes
	p, err := Open(o)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer p.Close()
	var got []string
	for _, m := range p.Missing() {
		got = append(got, m.Part)
		if m.Lost == "" || m.Err == nil || !strings.Contains(m.Err.Error(), "sched_") &&
			!strings.Contains(m.Err.Error(), "hrtimer_") {
			t.Errorf("%+v", m)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("missing: %v, want %v", p.Missing(), want)
	}
	g := cgrouptest.New(t)
	g.Prevail()
	limit(t, g, 20*ms, 100*ms)
	watch(t, p, g)
	g.Spin(1)
	within(t, 20*time.Second, "a throttle begins and ends",
		func() bool { got := totals(t, p, g); return got.Begins > 1 && got.Ends > 0 })
	if !slices.Contains(want, PartPeriods) {
		within(t, 20*time.Second, "the use of a period is counted",
			func() bool { return totals(t, p, g).PeriodEnd > 0 })
	}
}

// without is the running kernel's type information, but for a field.
func without(t *testing.T, record, field string) *btf.Spec {
	t.Helper()
	kernel, err := kernelTypes.Kernel()
	if err != nil {
		t.Fatal(err)
	}
	kernel = kernel.Copy()
	var s *btf.Struct
	if err := kernel.TypeByName(record, &s); err != nil {
		t.Fatal(err)
	}
	all := len(s.Members)
	s.Members = slices.DeleteFunc(slices.Clone(s.Members), func(m btf.Member) bool { return m.Name == field })
	if len(s.Members) != all-1 {
		t.Fatalf("%s has no field %s", record, field)
	}
	return kernel
}

// With PREEMPT_RT an event is sent from the scheduler only where the ring buffer's lock does not sleep.
func TestRealtimeKernel(t *testing.T) {
	for _, c := range []struct {
		name         string
		sleeps, ring string // what struct spinlock is made of, and the ring buffer's lock
		refused      bool
	}{
		{"PREEMPT_RT, a lock that sleeps", "rt_mutex_base", "spinlock_t", true},
		{"PREEMPT_RT before 5.15", "rt_mutex", "spinlock_t", true},
		{"PREEMPT_RT, a raw lock", "rt_mutex_base", "raw_spinlock_t", false},
		{"no PREEMPT_RT", "raw_spinlock", "spinlock_t", false},
	} {
		kernel, err := kernelTypes.Kernel()
		if err != nil {
			t.Fatal(err)
		}
		kernel = kernel.Copy()
		retype(t, kernel, "spinlock", "", &btf.Struct{Name: c.sleeps})
		retype(t, kernel, "bpf_ringbuf", "spinlock", &btf.Typedef{Name: c.ring, Type: &btf.Void{}})
		if err := (Options{kernel: kernel}).preemptible(); (err != nil) != c.refused || err != nil &&
			Explain(err) == "" {
			t.Errorf("%s: %v; hint: %q", c.name, err, Explain(err))
		}
	}
}

// retype gives a field of a struct another type; "" is the first field.
func retype(t *testing.T, kernel *btf.Spec, record, field string, as btf.Type) {
	t.Helper()
	var s *btf.Struct
	if err := kernel.TypeByName(record, &s); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(s.Members, func(m btf.Member) bool { return field == "" || m.Name == field })
	if i < 0 {
		t.Fatalf("%s has no field %s", record, field)
	}
	s.Members[i].Type = as
}

// The verifier is far from its limit.
func TestVerifierOfThrottles(t *testing.T) {
	p := open(t, Options{Use: true, Ahead: true})
	probetest.FarFromLimit(t, p.programs.All())
}
