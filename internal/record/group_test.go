package record

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/observe"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// TestIdleSandboxes: a pod's sandbox is in no list, unless it has a limit, or something of ours: then it may be a container
// whose name is not known yet.
func TestIdleSandboxes(t *testing.T) {
	r := New(slog.New(slog.DiscardHandler))
	add := func(path string, sandbox bool, quota time.Duration) *Group {
		id := workload.ID{Path: path, Inode: uint64(len(r.groups))}
		g := &Group{Group: &observe.Group{Container: workload.Container{ID: id, Sandbox: sandbox}, Disk: cpu.Bandwidth{Quota: quota, Period: 100 * ms}}}
		r.groups[id] = g
		return g
	}
	add("/container", false, cpu.Unlimited)
	add("/new", true, 50*ms)
	add("/ours", true, cpu.Unlimited).burst.Changed = true
	add("/sandbox", true, cpu.Unlimited)
	var paths []string
	none := func(*Group) (report.Throttles, bool) { return report.Throttles{}, false }
	for _, c := range r.Containers(nil, time.Time{}, none, func(*Group) report.Throttles { return report.Throttles{} }) {
		paths = append(paths, c.Cgroup)
	}
	if want := []string{"/container", "/new", "/ours"}; !slices.Equal(paths, want) {
		t.Errorf("%v, want %v", paths, want)
	}
}
