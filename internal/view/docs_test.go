package view

import (
	"os"
	"strings"
	"testing"
)

// TestCausesAreDocumented: docs/REFERENCE.md has each cause.
func TestCausesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, cause := range []Cause{OwnLimit, PodLimit, AtCap, LoadLine, ExtraCores, Budget, Guard, Refused, Paused, Held,
		PolicyNone, RefillsOff} {
		if !strings.Contains(string(text), "`"+string(cause)+"`") {
			t.Errorf("docs/REFERENCE.md does not name the cause %s", cause)
		}
	}
}
