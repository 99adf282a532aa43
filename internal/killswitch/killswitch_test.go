package killswitch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKillSwitch: a hold keeps its reason and its time for the next agent, and any file of that name is one.
func TestKillSwitch(t *testing.T) {
	file := filepath.Join(t.TempDir(), name)
	k, at := File(file), time.Date(2026, 11, 22, 3, 0, 0, 0, time.FixedZone("", 3600))
	touched := at.Add(-time.Hour)
	write := func(text string) func() error {
		return func() error {
			return errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chtimes(file, touched, touched))
		}
	}
	for what, c := range map[string]struct {
		make   func() error
		reason string
		since  time.Time
	}{
		"by command":       {func() error { return k.Hold("incident-7", at) }, "incident-7", at},
		"without a reason": {func() error { return k.Hold("", at) }, "", at},
		"of several lines": {func() error { return k.Hold("one\n two", at) }, "one two", at},
		"by touch":         {write(""), "", touched},
		"by echo":          {write("do not touch\nsee the wiki\n"), "do not touch", touched},
		"of a large file":  {write(strings.Repeat("x", 1<<20)), strings.Repeat("x", mostReason), touched},
		"of something else": {func() error {
			return errors.Join(syscall.Mkfifo(file, 0o600), os.Chtimes(file, touched, touched))
		}, "", touched},
		"of a folder": {func() error {
			return errors.Join(os.Mkdir(file, 0o700), os.Chtimes(file, touched, touched))
		}, "", touched},
	} {
		if err := c.make(); err != nil {
			t.Fatal(err)
		}
		if reason, since := k.Why(); !k.Held() || reason != c.reason || !since.Equal(c.since) {
			t.Errorf("%s: held %v since %v because of %q; want %v, %q", what, k.Held(), since, reason, c.since,
				c.reason)
		}
		if err := errors.Join(k.Resume(), k.Resume()); err != nil || k.Held() {
			t.Errorf("%s: %v, held %v after its end", what, err, k.Held())
		}
		if reason, since := k.Why(); reason != "" || !since.IsZero() {
			t.Errorf("%s: held since %v because of %q after its end", what, since, reason)
		}
	}
	if err := File(filepath.Join(file, "nosuch", "hold")).Hold("", at); err == nil {
		t.Error("a hold that cannot be written is none")
	}
}
