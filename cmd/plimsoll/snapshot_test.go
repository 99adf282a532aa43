package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/view"
)

// aSnapshot is one of a node with a container.
func aSnapshot(t *testing.T) []byte {
	t.Helper()
	v := view.View{Schema: view.Schema, Now: t0.Add(time.Minute), Node: "node-1",
		Rows: []view.Row{{ID: "/pods/web", Name: "web"}}, Recording: &view.Recording{Since: t0}}
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	if err := errors.Join((view.Snapshot{Made: v.Now, View: v}).WriteJSON(zip), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSnapshot: the file is written for its owner alone, only when it is whole,
// and what went wrong is said with a hint.
func TestSnapshot(t *testing.T) {
	good := aSnapshot(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/snapshot", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error": "it is not known who asks", "hint": "send a token"}`)
			return
		}
		w.Header().Set("Content-Disposition", `attachment; filename="../../plimsoll-node-1.json.gz"`)
		_, _ = w.Write(good)
	})
	mux.HandleFunc("/cut/api/v1/snapshot", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(good[:len(good)/2])
	})
	mux.HandleFunc("/old/", http.NotFound)
	secure := httptest.NewTLSServer(mux)
	defer secure.Close()
	server := httptest.NewServer(mux)
	defer server.Close()
	dir, n := t.TempDir(), newNode(t)
	t.Chdir(dir)
	if err := os.WriteFile("token", []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, err := n.run("snapshot", "--url", server.URL, "--token-file", "token")
	info, missing := os.Stat("plimsoll-node-1.json.gz")
	if err != nil || missing != nil || info.Mode().Perm() != 0o600 ||
		!strings.Contains(stderr, "1 containers, with their periods of the last 1m0s") ||
		!strings.Contains(stderr, "plimsoll serve --from plimsoll-node-1.json.gz") {
		t.Errorf("%v, %v, %s", err, missing, stderr)
	}
	if stdout, _, err := n.run("snapshot", "--url", server.URL, "--token-file", "token", "-o", "-"); err != nil ||
		stdout != string(good) {
		t.Errorf("%v, %d bytes, want %d", err, len(stdout), len(good))
	}
	for args, want := range map[string][2]string{
		"--url " + server.URL + " -o other":     {"it is not known who asks", "send a token"},
		"--url " + server.URL + "/cut -o other": {"not complete", "again"},
		"--url " + server.URL + "/old -o other": {"404", ""},
		"--url http://" + secure.Listener.Addr().String() + " -o other": {"400",
			"it may serve TLS: --url http://127.0.0.1:12780"},
		"--url " + secure.URL + " -o other": {"certificate", "on its machine --url http://127.0.0.1:12780"},
		"--url http://127.0.0.1:1 -o other": {"nobody serves at http://127.0.0.1:1",
			"plimsoll run"},
		"--url " + server.URL + " --token-file none": {"none", ""},
	} {
		_, stderr, err := n.run(append([]string{"snapshot"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(stderr, want[0]) || !strings.Contains(stderr, want[1]) {
			t.Errorf("%s: %s; want %q", args, stderr, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

// TestSnapshotReplacesNothing: a file only if asked to, and what is no file not even then. Nothing is fetched before.
func TestSnapshotReplacesNothing(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write(aSnapshot(t))
	}))
	defer server.Close()
	n := newNode(t)
	t.Chdir(t.TempDir())
	if err := errors.Join(os.WriteFile("file", nil, 0o600), os.Symlink("file", "link"),
		syscall.Mkfifo("pipe", 0o600)); err != nil {
		t.Fatal(err)
	}
	for args, hint := range map[string]string{"pipe": "-o -", "link --force": "-o -", "file": "--force"} {
		name, _, _ := strings.Cut(args, " ")
		before, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		_, stderr, err := n.run(append([]string{"snapshot", "--url", server.URL, "-o"}, strings.Fields(args)...)...)
		after, gone := os.Lstat(name)
		if err == nil || !strings.Contains(stderr, hint) || asked != 0 || gone != nil || !os.SameFile(before, after) {
			t.Errorf("%s: %v, %q, asked %d times, %v; want it left alone, and the hint %q", args, err, stderr, asked,
				gone, hint)
		}
	}
	_, _, err := n.run("snapshot", "--url", server.URL, "-o", "file", "--force")
	if got, e := os.ReadFile("file"); err != nil || e != nil || len(got) == 0 {
		t.Errorf("with --force: %v, %v, %d bytes", err, e, len(got))
	}
}

// TestServeFrom: a snapshot is served without an agent, and what is none is refused with a hint.
func TestServeFrom(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s.json.gz")
	if err := os.WriteFile(name, aSnapshot(t), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &serveFlags{listen: []string{"127.0.0.1:0"}, from: name, metrics: "basic", child: true, agent: "/nowhere"}
	stdin, end := io.Pipe()
	said, stdout := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- f.serve(t.Context(), stdin, stdout, slog.New(slog.DiscardHandler)) }()
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get("http://" + strings.TrimSpace(address) + "/api/v1/view")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || !strings.Contains(string(body), `"recorded":"`) ||
		!strings.Contains(string(body), `"node":"node-1"`) {
		t.Errorf("%v %s", err, body)
	}
	end.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for what, from := range map[string]string{"not compressed": "serve_test.go", "no such file": "none"} {
		if what == "not compressed" {
			from = filepath.Join(t.TempDir(), "plain")
			if err := os.WriteFile(from, []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f := &serveFlags{listen: []string{"127.0.0.1:0"}, from: from, metrics: "basic"}
		err := f.serve(t.Context(), nil, io.Discard, slog.New(slog.DiscardHandler))
		var hinted interface{ Hint() string }
		if err == nil || !strings.Contains(err.Error(), what) || !errors.As(err, &hinted) || hinted.Hint() == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
