package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestLogFormat: one line for people, or one object for whoever collects them.
func TestLogFormat(t *testing.T) {
	write := func(format string) string {
		t.Helper()
		var b strings.Builder
		log, err := (&runFlags{logFormat: format}).logger(&b)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("hidden")
		log.Warn("write", "error", errors.New("no"))
		return b.String()
	}
	if line := write("text"); !strings.HasSuffix(line, " level=WARN msg=write error=no\n") {
		t.Errorf("text: %q", line)
	}
	var line struct{ Level, Msg, Error string }
	if err := json.Unmarshal([]byte(write("json")), &line); err != nil || line.Level != "WARN" || line.Msg != "write" || line.Error != "no" {
		t.Errorf("json: %+v, %v", line, err)
	}
	_, stderr, err := (node{}).run("run", "--log-format", "xml")
	if err == nil || exitCode(err) != exitMisused || !strings.Contains(stderr, "text, json") {
		t.Errorf("xml: %v, %q", err, stderr)
	}
}
