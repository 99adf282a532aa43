// Package golden compares what a test makes with what is on record: a file of testdata, or a part of a document. With
// UPDATE_GOLDEN=1 in the environment it writes the record anew; read the difference then.
package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Updating reports whether records are written anew.
func Updating() bool { return os.Getenv("UPDATE_GOLDEN") != "" }

// File compares got with a file of testdata.
func File(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if Updating() {
		write(t, file, got)
	}
	compare(t, file, read(t, file), got)
}

// Part compares got with a part of a document, between the comments <!-- part: begin --> and <!-- part: end -->.
func Part(t testing.TB, file, part, got string) {
	t.Helper()
	begin, end := "<!-- "+part+": begin -->\n", "<!-- "+part+": end -->\n"
	before, rest, found := strings.Cut(read(t, file), begin)
	have, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for %s", file, part)
	}
	if Updating() {
		write(t, file, before+begin+got+end+after)
		have = got
	}
	compare(t, file, have, got)
}

func compare(t testing.TB, file, want, got string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got); hint: UPDATE_GOLDEN=1 writes it anew\n%s", file, diff)
	}
}

func read(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
