package record

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// TestProblemsCallGroups: a problem has the name that people know, and the path where there is none.
func TestProblemsCallGroups(t *testing.T) {
	r := New(slog.New(slog.DiscardHandler))
	known, gone := workload.ID{Path: "/kubepods/pod1/2"}, workload.ID{Path: "/gone"}
	r.groups[known] = &Group{Group: &observe.Group{Container: workload.Container{ID: known, Name: "default/web/nginx"}}}
	for id, want := range map[workload.ID]string{known: "default/web/nginx: another program", gone: "/gone: another program"} {
		if said := r.Note(Note{Key: plan.Key{ID: id, Knob: plan.Quota}, Event: ledger.Overrode}); !strings.HasPrefix(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
	}
}

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
