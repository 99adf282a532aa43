package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/fulldisk"
)

// held reads a file, and the names of its directory.
func held(t *testing.T, path string) (text string, names int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data), len(list)
}

// TestWrite: the file is replaced, whatever a crash has left, with its mode, and nothing else is left.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(path+Suffix, []byte("left by a crash, and longer than what is written"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if err := Write(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, names := held(t, path); got != text || names != 1 {
			t.Errorf("%q among %d files, want %q", got, names, text)
		}
	}
	if s, err := os.Stat(path); err != nil || s.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", s.Mode(), err)
	}
}

// TestWriteThatFails: a write that stops half way leaves the old file, and no temporary one.
func TestWriteThatFails(t *testing.T) {
	if fulldisk.Elsewhere(t) {
		return
	}
	path := filepath.Join(t.TempDir(), "a.json")
	if err := Write(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	free := fulldisk.Fill(t, 5)
	err := Write(path, []byte("the new one"), 0o600)
	free()
	if !errors.Is(err, unix.EFBIG) {
		t.Errorf("a write beyond the limit: %v", err)
	}
	if got, names := held(t, path); got != "old" || names != 1 {
		t.Errorf("%q among %d files, want the old one alone", got, names)
	}
	if err := Write(filepath.Join(filepath.Dir(path), "none", "a"), nil, 0o600); err == nil {
		t.Error("no error without a directory")
	}
}
