package hint

import (
	"errors"
	"fmt"
	"testing"
)

// TestHint: the advice and the misuse of an error are found through what wraps it, and its text stays.
func TestHint(t *testing.T) {
	base := errors.New("base")
	err := fmt.Errorf("outer: %w", With(Misuse(base), "do this"))
	var h interface{ Hint() string }
	if !errors.As(err, &h) || h.Hint() != "do this" || !errors.Is(err, base) || !Misused(err) ||
		err.Error() != "outer: base" {
		t.Errorf("%v: hint %v, misuse %v", err, h, Misused(err))
	}
	if err := With(base, ""); err != base || Misused(err) {
		t.Errorf("no advice: %v", err)
	}
	if With(nil, "do this") != nil || Misuse(nil) != nil {
		t.Error("advice without an error is one")
	}
	if err := Misusef("--x %d: %w", 3, base); err.Error() != "--x 3: base" || !errors.Is(err, base) || !Misused(err) {
		t.Errorf("%v", err)
	}
}

func TestWord(t *testing.T) {
	for arg, want := range map[string]string{"/lab/web-1.service": "/lab/web-1.service", "/lab/a b": "'/lab/a b'",
		"it's": `'it'\''s'`, "$(x)": "'$(x)'"} {
		if got := Word(arg); got != want {
			t.Errorf("%q is spelled %s, want %s", arg, got, want)
		}
	}
}
