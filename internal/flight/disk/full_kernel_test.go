package disk

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

// onSmallDisk runs a test on a thread that has a file system of one MiB of its own.
func onSmallDisk(t *testing.T, run func(dir string)) {
	t.Helper()
	if os.Geteuid() != 0 {
		cgrouptest.Skip(t, "only root may mount")
	}
	dir := t.TempDir()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends, and its mounts with it
		err := unix.Unshare(unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m")
		}
		if err == nil {
			run(dir)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		cgrouptest.Skip(t, "a small file system cannot be mounted here: %v", err)
	}
	if names, _ := onDisk(t, dir); len(names) > 0 {
		t.Errorf("the test wrote outside of its file system: %v", names)
	}
}

// TestRecordOnAFullDisk: minutes are dropped and counted, what is there stays readable, nothing half written is left,
// the log has one line, and once there is room the record goes on.
func TestRecordOnAFullDisk(t *testing.T) {
	onSmallDisk(t, func(dir string) {
		var log bytes.Buffer
		now := t0
		w := NewWriter(Options{Dir: dir, MaxBytes: DefaultBytes, MaxAge: DefaultAge}, func() time.Time { return now },
			slog.New(slog.NewTextHandler(&log, nil)))
		filler := filepath.Join(dir, "filler")
		if err := os.WriteFile(filler, make([]byte, 900<<10), 0o600); err != nil {
			t.Error(err)
			return
		}
		var r *Ring
		step := func(n int) {
			now = t0.Add(time.Duration(n+1) * time.Minute)
			r = w.write(r, minute(n, 30))
		}
		for n := range 12 {
			step(n)
		}
		s := w.State()
		if s.Written == 0 || s.Dropped == 0 || s.Written+s.Dropped != 12*30*600 ||
			!strings.Contains(s.Problem, unix.ENOSPC.Error()) {
			t.Errorf("%+v", s)
		}
		written := int(s.Written / (30 * 600))
		if got := selected(t, dir, 0, 12); len(got.Rows) != written*30 || len(got.Skipped) > 0 {
			t.Errorf("%d rows, want those of %d minutes; %v", len(got.Rows), written, got.Skipped)
		}
		names, _ := onDisk(t, dir)
		for _, name := range names {
			if strings.HasSuffix(name, temporary) {
				t.Errorf("%s is left of a minute that did not fit", name)
			}
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 1 {
			t.Errorf("%d lines in the log, want one:\n%s", n, log.String())
		}
		if err := os.Remove(filler); err != nil {
			t.Error(err)
		}
		step(12)
		if s := w.State(); s.Problem != "" || !strings.Contains(log.String(), "written again") {
			t.Errorf("with room again: %+v\n%s", s, log.String())
		}
		if got := selected(t, dir, 12, 13); len(got.Rows) != 30 {
			t.Errorf("%d rows of the minute after, want 30", len(got.Rows))
		}
	})
}

// TestRecordOnASmallDisk: a ring that is bounded below the size of its disk never fills it.
func TestRecordOnASmallDisk(t *testing.T) {
	onSmallDisk(t, func(dir string) {
		w := NewWriter(Options{Dir: dir, MaxBytes: 400 << 10, MaxAge: DefaultAge},
			func() time.Time { return t0.Add(2 * time.Hour) }, slog.New(slog.DiscardHandler))
		var r *Ring
		for n := range 60 {
			r = w.write(r, minute(n, 30))
		}
		if s := w.State(); s.Dropped != 0 || s.Problem != "" || s.Bytes > 400<<10 {
			t.Errorf("%+v", s)
		}
	})
}
