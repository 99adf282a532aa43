package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/hint"
)

// TestAccessNeedsItsFiles: who may read is named by files that say so. A file that names nobody opens nothing.
func TestAccessNeedsItsFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		f, err := os.CreateTemp(dir, "")
		if err == nil {
			_, err = f.WriteString(text)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return f.Name()
	}
	none := filepath.Join(dir, "none")
	for what, f := range map[string]serveFlags{
		"no token":          {tokenFile: none},
		"an empty token":    {tokenFile: file("")},
		"a token of blanks": {tokenFile: file(" \n")},
		"no authorities":    {clientCA: none},
		"no certificate":    {clientCA: file("text")},
		"one of two":        {tokenFile: file("secret"), clientCA: none},
	} {
		if access, _, err := f.access(); err == nil || access != nil || !strings.Contains(hint.Line(err), "hint: ") {
			t.Errorf("%s: %v, %v", what, access, err)
		}
	}
	if access, authorities, err := (&serveFlags{tokenFile: file("secret\n")}).access(); access == nil ||
		authorities != nil || err != nil {
		t.Errorf("a token: %v, %v, %v", access, authorities, err)
	}
	if access, _, err := (&serveFlags{}).access(); access != nil || err != nil {
		t.Errorf("no flag: %v, %v", access, err)
	}
	open := serveFlags{listen: []string{"0.0.0.0:0"}, agent: none, metrics: "basic"}
	gone, cancel := context.WithCancel(t.Context())
	cancel() // what is served all the same ends
	err := open.serve(gone, strings.NewReader(""), io.Discard, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "open to the network") {
		t.Errorf("beyond the loopback interface, open to everybody: %v", err)
	}
}

// TestReadGroupIsNotRoots: the group that may read is one without rights, by its number or name.
func TestReadGroupIsNotRoots(t *testing.T) {
	for text, want := range map[string]int{"64001": 64001, "": unprivileged} {
		f := runFlags{readGroup: text, listen: "127.0.0.1:0"}
		if err := f.resolveRead(&globals{}); err != nil || f.read.Group != want {
			t.Errorf("%q: %d, %v", text, f.read.Group, err)
		}
	}
	for _, text := range []string{"-1", "0", "4294967295", "4294967296", "root", "no such group"} {
		f := runFlags{readGroup: text, listen: "127.0.0.1:0"}
		if err := f.resolveRead(&globals{}); err == nil || !hint.Misused(err) {
			t.Errorf("%q: group %d, %v", text, f.read.Group, err)
		}
	}
}
