package pauses

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPausesAreKept(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1000, 0)
	load := func() *Pauses {
		t.Helper()
		p, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := load()
	for path, d := range map[string]time.Duration{"/a": time.Minute, "/b": time.Hour, "/c": time.Hour} {
		if err := p.Set(path, now.Add(d), now, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Set("/c", now, now, false); err != nil { // ends it
		t.Fatal(err)
	}
	p = load()
	if len(p.until) != 2 {
		t.Errorf("kept %v, want those of /a and /b", p.until)
	}
	for _, c := range []struct {
		path  string
		after time.Duration
		want  bool
	}{
		{"/a", 0, true}, {"/a", time.Minute - 1, true}, {"/a", time.Minute, false},
		{"/b", time.Minute, true}, {"/c", 0, false}, {"/d", 0, false},
	} {
		if got := p.Paused(c.path, now.Add(c.after)); got != c.want {
			t.Errorf("%s after %v: paused %v, want %v", c.path, c.after, got, c.want)
		}
	}
	later := now.Add(10 * time.Minute)
	if err := p.Set("/d", later.Add(time.Hour), later, false); err != nil {
		t.Fatal(err)
	}
	if _, kept := load().until["/a"]; kept {
		t.Error("a pause that is over is kept for ever")
	}
	if _, kept := load().until["/b"]; !kept {
		t.Error("a pause was lost over another one")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPausesThatCannotBeKept(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1000, 0)
	file := filepath.Join(dir, "pauses.json")
	for _, text := range []string{`{"/a": 5`, "", "null"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var broken *BrokenError
		if _, err := Load(dir); !errors.As(err, &broken) || !strings.Contains(err.Error(), file) ||
			broken.Hint() == "" {
			t.Errorf("a file that holds %q: %v", text, err)
		}
	}
	p, err := Load(filepath.Join(dir, "none"))
	if err != nil {
		t.Fatalf("no file is no pause: %v", err)
	}
	if err := p.Set("/a", now.Add(time.Hour), now, false); err == nil || !strings.Contains(err.Error(), "save pauses") {
		t.Errorf("a directory that is not there: %v", err)
	}
	if p.Paused("/a", now) {
		t.Error("it failed, and pauses all the same")
	}
	if err := p.Set("/a", now.Add(time.Minute), now, true); err == nil || !p.Paused("/a", now) {
		t.Errorf("a release needs no file: %v", err)
	}
	if err := p.Set("/a", now, now, false); err == nil || !p.Paused("/a", now) {
		t.Errorf("the end of a pause was not kept, and it ends: %v", err)
	}
}
