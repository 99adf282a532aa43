package golden

import (
	"fmt"
	"path/filepath"
	"testing"
)

// heard is a test that keeps what it is told.
type heard struct {
	testing.TB
	text string
}

func (h *heard) Helper()                           {}
func (h *heard) Errorf(format string, args ...any) { h.text = fmt.Sprintf(format, args...) }
func (h *heard) Fatalf(format string, args ...any) { h.text = fmt.Sprintf(format, args...); panic(h) }

// TestGolden: a difference fails the test, and an update mends what is on record and nothing beside it.
func TestGolden(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("UPDATE_GOLDEN", "")
	doc := filepath.Join("docs", "A.md")
	around := "a\n<!-- b: begin -->\n%s<!-- b: end -->\nc\n"
	write(t, doc, fmt.Sprintf(around, "old\n"))
	write(t, "testdata/x.txt", "old\n")
	both := func() (failed int) {
		for _, check := range []func(t testing.TB){
			func(t testing.TB) { File(t, "x.txt", "new\n") },
			func(t testing.TB) { Part(t, doc, "b", "new\n") },
		} {
			h := &heard{TB: t}
			if check(h); h.text != "" {
				failed++
			}
		}
		return failed
	}
	if n := both(); n != 2 {
		t.Errorf("%d of 2 differences are found", n)
	}
	t.Setenv("UPDATE_GOLDEN", "1")
	if n := both(); n != 0 {
		t.Errorf("%d fail while they are updated", n)
	}
	t.Setenv("UPDATE_GOLDEN", "")
	if n := both(); n != 0 || read(t, doc) != fmt.Sprintf(around, "new\n") {
		t.Errorf("%d fail after an update, and the document is\n%s", n, read(t, doc))
	}
}

// TestNoPlace: a document without the part fails the test.
func TestNoPlace(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("UPDATE_GOLDEN", "")
	write(t, "A.md", "a\n<!-- b: begin -->\n")
	h := &heard{TB: t}
	defer func() {
		if recover() != h || h.text != "A.md has no place for b" {
			t.Errorf("%q", h.text)
		}
	}()
	Part(h, "A.md", "b", "")
}
