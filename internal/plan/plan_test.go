package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
	"plimsoll/internal/workload"
)

const ms = time.Millisecond

func change(path string, knob Knob, from, to time.Duration) Change {
	return Change{Cgroup: workload.ID{Path: path}, Knob: knob, From: Time(from), To: Time(to)}
}

// TestOrder: whatever the order in which changes were thought of, the kernel refuses none for it.
func TestOrder(t *testing.T) {
	changes := []Change{
		change("/pod/a", Burst, 0, 50*ms),
		change("/pod/b", Quota, 150*ms, 50*ms),
		change("/pod", Burst, 0, 50*ms),
		change("/pod2", Quota, 300*ms, 100*ms),
		change("/pod/a", Quota, 50*ms, 150*ms),
		change("/pod", Quota, 100*ms, 200*ms),
		change("/pod2/c", Quota, 300*ms, 100*ms),
		change("/pod2/c", Burst, 100*ms, 50*ms),
	}
	Order(changes)
	var got []string
	for _, c := range changes {
		got = append(got, c.Cgroup.Path+" "+string(c.Knob)+" "+string(c.To))
	}
	want := []string{
		"/pod2/c burst 50ms",                     // bursts down before quotas go down
		"/pod quota 200ms", "/pod/a quota 150ms", // quotas up, parents first
		"/pod/b quota 50ms", "/pod2/c quota 100ms", // quotas down, children first
		"/pod2 quota 100ms",
		"/pod burst 50ms", "/pod/a burst 50ms", // bursts up last
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestValues(t *testing.T) {
	for _, d := range []time.Duration{0, time.Microsecond, 50 * ms, 1500 * ms, cpu.Unlimited} {
		if got, err := Time(d).Time(); err != nil || got != d {
			t.Errorf("%v is spelled %q and read as %v, %v", d, Time(d), got, err)
		}
	}
	if got := Time(cpu.Unlimited); got != "max" {
		t.Errorf("no limit is spelled %q", got)
	}
	if n, err := Number(-7).Number(); n != -7 || err != nil {
		t.Errorf("Number: %v, %v", n, err)
	}
	if _, err := Value("soon").Time(); err == nil {
		t.Error("\"soon\" is a time")
	}
	if _, err := Value("many").Number(); err == nil {
		t.Error("\"many\" is a number")
	}
}

// TestResultBandwidth: a result tells of one of the two files, and of none that could not be read back.
func TestResultBandwidth(t *testing.T) {
	before := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}
	for _, c := range []struct {
		knob  Knob
		held  Value
		want  cpu.Bandwidth
		known bool
	}{
		{Quota, "80ms", cpu.Bandwidth{Quota: 80 * ms, Period: before.Period}, true},
		{Burst, "20ms", cpu.Bandwidth{Quota: before.Quota, Period: before.Period, Burst: 20 * ms}, true},
		{Quota, "", before, false},
		{Slice, "1ms", before, false},
	} {
		got, known := Result{Change: Change{Knob: c.knob}, InForce: c.held}.Bandwidth(before)
		if got != c.want || known != c.known {
			t.Errorf("%s %q: %v, %v; want %v, %v", c.knob, c.held, got, known, c.want, c.known)
		}
	}
}
