package features

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/probe"
)

// TestEventFeatures: each part has a line of its own, with what is lost without it.
func TestEventFeatures(t *testing.T) {
	refused := errors.New("refused")
	forecast := []probe.Missing{{Part: probe.PartForecast, Lost: "throttles are not foreseen", Err: refused}}
	for name, c := range map[string]struct {
		missing []probe.Missing
		err     error
		lost    map[string]string // features that are not there
	}{
		"all": {},
		"no forecast": {missing: forecast,
			lost: map[string]string{"throttle-events-forecast": "throttles are not foreseen: refused"}},
		"nothing": {err: refused, lost: map[string]string{"throttle-events": "refused",
			"throttle-events-forecast": "without throttle-events", "throttle-events-balance": "without",
			"throttle-events-wakeups": "without", "throttle-events-periods": "without"}},
	} {
		list := eventFeatures(c.missing, c.err)
		if len(list) != 1+len(probe.Parts()) {
			t.Errorf("%s: %+v", name, list)
		}
		for _, f := range list {
			want, lost := c.lost[f.Name]
			if lost != (f.State == cgroup.No) || !strings.Contains(f.Detail, want) || f.Detail == "" {
				t.Errorf("%s: %+v, want %q", name, f, want)
			}
		}
	}
}

// TestProbeWeights: the mode in force is named, and what is not understood is shown as it is.
func TestProbeWeights(t *testing.T) {
	for text, want := range map[string]struct {
		state  cgroup.State
		detail string
	}{
		"up smp (concur) max tasks\n": {cgroup.Yes, "by mode concur"},
		"(up) smp concur max tasks\n": {cgroup.Yes, "by mode up"},
		"1\n":                         {cgroup.Unknown, "1"},
	} {
		path := filepath.Join(t.TempDir(), "cgroup_mode")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if f := weights(path); f.State != want.state || !strings.Contains(f.Detail, want.detail) {
			t.Errorf("%q: %+v", text, f)
		}
	}
	if f := weights(filepath.Join(t.TempDir(), "none")); f.State != cgroup.No {
		t.Errorf("%+v", f)
	}
}
