package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/probe"
	"plimsoll/lab/frame"
)

// TestHostileOnRealGroups runs every condition, small and short, and expects throttles that are ended, in quiet and
// beside the hostility, and nothing left behind. How soon they are ended is the bench's to say. The jobs take half of
// the limit on average: demand that lasts above it is met by a raise, and then nothing is throttled.
func TestHostileOnRealGroups(t *testing.T) {
	cgrouptest.New(t) // groups can be made here
	s := &settings{Settings: frame.Settings{Root: cgrouptest.Root(), Plimsoll: cgrouptest.Binary(t),
		Groups: frame.Pinnable}, Victims: 4, Pods: 5, Asking: 3,
		Throttling: 5, Job: frame.Job{Quota: frame.LeastQuota, Every: time.Second / 2, Seed: 1},
		span: time.Second, warmUp: time.Second / 2}
	r, err := frame.Run(t.Context(), "hostile", s, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != len(conditions()) {
		t.Errorf("%d conditions of %d", len(r.Rows), len(conditions()))
	}
	for _, row := range r.Rows {
		for name, o := range map[string]outcome{"quiet": row.Quiet, "hostile": row.Hostile} {
			if o.Throttles == 0 || len(o.Missed) == o.Throttles || o.P50 <= 0 || o.P99 < o.P50 || o.Memory < 1<<20 {
				t.Errorf("%s, %s: %+v", row.Condition, name, o)
			}
		}
		if row.Fault != "" {
			t.Errorf("%s: %s", row.Condition, row.Fault)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := frame.Run(ctx, "hostile", s, t.Logf); err == nil {
		t.Error("an interrupted bench gave a result")
	}
	cgrouptest.NothingLeft(t, "plimsoll-hostile-")
}

// TestStallsAreNoted: while a thread of higher priority has a CPU, the watch there is late, and says for how long.
func TestStallsAreNoted(t *testing.T) {
	cgrouptest.New(t) // as root
	const held = 60 * time.Millisecond
	w := watchStalls([]int{0})
	from := probe.Monotonic()
	done := make(chan error)
	go func() {
		err := takeCPU(0, 5)
		for begin := probe.Monotonic(); err == nil && probe.Monotonic() < begin+held; {
		}
		done <- err
	}()
	err := <-done
	to := probe.Monotonic()
	w.close()
	list, failed := w.collect()
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	if got := during(list, from, to+held); got < held/2 {
		t.Errorf("a CPU that was held for %v stood still for %v: %+v", held, got, list)
	}
}

// TestMain is a worker where the lab starts this program as one, and has mounts of its own.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-worker") {
		main()
	}
	if os.Geteuid() == 0 {
		if err := isolate(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
