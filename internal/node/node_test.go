package node

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"plimsoll/internal/journal"
)

// TestStateHint: what cannot be written can be copied, and what has advice of its own keeps it.
func TestStateHint(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "open", Path: "/run/plimsoll/journal", Err: syscall.EROFS},
			"cp -a /run/plimsoll /tmp/state"},
		{&fs.PathError{Op: "write", Path: "/run/plimsoll/journal.new", Err: syscall.ENOSPC},
			"cp -a /run/plimsoll /tmp/state"},
		{&journal.VersionError{Version: 2}, "of the version that wrote it"},
		{fs.ErrPermission, ""},
	} {
		if got := stateHint(c.err, "/run/plimsoll"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
