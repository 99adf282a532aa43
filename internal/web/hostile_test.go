package web

import (
	"net/http"
	"strings"
	"testing"
	"unicode"

	"plimsoll/internal/report"
)

// TestHostileNamesOnTheNetwork: whatever a container is called, every answer prints, and no browser makes a page of it.
func TestHostileNamesOnTheNetwork(t *testing.T) {
	s := healthy()
	name := "default/\x1b[2J\u202e\u009b%s%n\n<script>alert(1)</script>/" + strings.Repeat("x", 5000)
	s.Containers = []report.Container{{Cgroup: "/kubepods/" + name, Name: name, Pod: name, Why: name}}
	s.ConfigOK, s.ConfigMsg, s.Kubernetes = false, name, &report.Kubernetes{Fault: name}
	url, c := open(t, &fake{status: s}, nil)
	for _, path := range []string{"/metrics", "/api/v1/status", "/api/v1/report", "/readyz", "/"} {
		res, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if kind := res.Header.Get("Content-Type"); strings.Contains(kind, "html") != (path == "/") ||
			res.Header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(res.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %v", path, res.Header)
		}
		_, body := get(t, url+path)
		prints(t, path, body)
		if path == "/" && strings.Contains(body, "script") {
			t.Error("a name is on the page")
		}
	}
	if err := reader(c).Healthy(t.Context(), "/readyz"); err == nil {
		t.Error("ready, without an API server")
	} else {
		prints(t, "/readyz of the socket", err.Error())
	}
}

// prints checks that a text has nothing but lines of what prints.
func prints(t *testing.T, where, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%s: %q", where, text[i:min(len(text), i+20)])
	}
}
