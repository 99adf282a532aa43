package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/report"
	"plimsoll/lab/frame"
)

const (
	diagnosePatience = time.Minute // to load its programs, and to report: long on an emulated CPU
	longestDiagnosis = time.Hour
)

// split is where the time went that a target wanted: what it received and its waits sum up to that.
type split struct {
	Wanted    float64 `json:"wanted_seconds"`
	Received  float64 `json:"received_seconds"`
	Reserved  float64 `json:"reserved_seconds"`
	Shortfall float64 `json:"shortfall_seconds"` // of what was wanted and reserved, not received
	// of that, behind the neighbour: what an exclusive CPU is to end
	Owed  float64            `json:"owed_seconds"`
	Waits map[string]float64 `json:"waits_seconds"` // by cause; the neighbour's are apart from those of others
	// of the wait behind the neighbour: a CPU that it might use was idle
	Phantom float64 `json:"phantom_seconds"`
	Forced  float64 `json:"forced_seconds"` // the neighbour had its share on other CPUs
	Waking  float64 `json:"waking_seconds"` // it woke while a slice was running
}

// others is the cause of waits behind programs that are no part of the experiment.
const others = "others"

// plus adds up two measurements.
func (s split) plus(o split) split {
	sum := split{Wanted: s.Wanted + o.Wanted, Received: s.Received + o.Received, Reserved: s.Reserved + o.Reserved,
		Shortfall: s.Shortfall + o.Shortfall, Owed: s.Owed + o.Owed,
		Phantom: s.Phantom + o.Phantom, Forced: s.Forced + o.Forced, Waking: s.Waking +
			o.Waking, Waits: map[string]float64{}}
	for _, waits := range []map[string]float64{s.Waits, o.Waits} {
		for cause, seconds := range waits {
			sum.Waits[cause] += seconds
		}
	}
	return sum
}

// splitOf is the split of a container that was diagnosed for a while. The machine has other programs than the
// neighbour, and some that no cpuset binds: so waits behind the neighbour and behind others are separate.
func splitOf(d report.Diagnosed, elapsed time.Duration, neighbour string) split {
	s := split{Wanted: d.Wanted.Seconds(), Received: d.Received.Seconds(), Waits: map[string]float64{}}
	if d.Reserved != nil && d.Short != nil {
		s.Reserved, s.Shortfall = *d.Reserved*elapsed.Seconds(), d.Short.Seconds()
	}
	var behind, all time.Duration
	for _, n := range d.Neighbours {
		all += n.Time
		if n.Cgroup != neighbour {
			continue
		}
		behind += n.Time
		s.Phantom += n.Phantom.Seconds()
		s.Forced += n.Forced.Seconds()
		s.Waking += n.Waking.Seconds()
	}
	for _, w := range d.Waits {
		if w.Cause != report.CauseNeighbour || all <= 0 {
			s.Waits[string(w.Cause)] += w.Time.Seconds()
			continue
		}
		part := float64(behind) / float64(all)
		s.Owed = part * w.Short.Seconds()
		s.Waits[string(w.Cause)] = part * w.Time.Seconds()
		s.Waits[others] = (1 - part) * w.Time.Seconds()
	}
	return s
}

// causes are those that a split has, the longest first.
func (s split) causes() []string {
	var list []string
	for cause, seconds := range s.Waits {
		if seconds > 0 {
			list = append(list, cause)
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Waits[b], s.Waits[a]), cmp.Compare(a, b))
	})
	return list
}

// diagnose has `plimsoll diagnose` watch the target while work is done.
func (b *bench) diagnose(ctx context.Context, work func()) (s split) {
	if !b.split {
		work()
		return s
	}
	cmd := exec.Command(b.settings.Plimsoll, "diagnose", b.target, "--cgroup-root", b.settings.Root, "--config",
		b.requests, "--json", "--for", longestDiagnosis.String())
	var out bytes.Buffer
	cmd.Stdout = &out
	b.Scope(ctx, func(f *frame.Bench) {
		child := frame.Must(experiment.Launch(cmd, func(int) error { return nil }))
		f.Undo(child.Kill)
		frame.Check(child.Await(ctx, diagnosePatience, func() error { return attached(child.PID()) }))
		frame.Check(experiment.Pause(ctx, afterChange/4)) // for the other programs, which follow at once
		work()
		frame.Check(errors.Join(child.Ended(), child.Stop(diagnosePatience)))
		s = frame.Must(read(out.Bytes(), b.target, b.neighbour))
	})
	return s
}

// attached is an error as long as a process has no program in the kernel: it holds a link to each
// (kernel/bpf/syscall.c, bpf_link_new_fd).
func attached(pid int) error {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, name := range files {
		if to, err := os.Readlink(name); err == nil && strings.Contains(to, "bpf_link") {
			return nil
		}
	}
	return errors.Join(errors.New("plimsoll diagnose has no programs in the kernel"), err)
}

// read reads the target's split from the output of `plimsoll diagnose --json`.
func read(text []byte, target, neighbour string) (split, error) {
	var d report.Diagnosis
	if err := json.Unmarshal(text, &d); err != nil {
		return split{}, fmt.Errorf("read the output of plimsoll diagnose: %w", err)
	}
	for _, c := range d.Containers {
		if c.Cgroup == target {
			return splitOf(c, d.Elapsed, neighbour), nil
		}
	}
	return split{}, fmt.Errorf("plimsoll diagnose reports nothing about %s", target)
}
