package node

import (
	"strings"
	"testing"
)

func TestParseStateDir(t *testing.T) {
	for line, want := range map[string]string{
		"plimsoll run": DefaultStateDir,
		"plimsoll run --state-dir /run/lab --poll": "/run/lab",
		"/plimsoll --state-dir=/run/lab run":       "/run/lab",
		"plimsoll run --state-dir":                 DefaultStateDir,
		"plimsoll restore --state-dir /run/lab":    "", // it ends by itself
		"":                                         "",
	} {
		if got := parseStateDir([]byte(strings.ReplaceAll(line, " ", "\x00") + "\x00")); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
