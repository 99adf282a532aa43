package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"plimsoll/internal/report"
)

// PagePolicy has the page take scripts and styles from this server only, and no page show it in a frame.
const PagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// look adds what the page needs to a site.
func (s *Site) look(mux *http.ServeMux, page fs.FS) {
	mux.HandleFunc("GET /api/v1/view", s.present(s.viewed))
	mux.HandleFunc("GET /api/v1/live", s.watch.live(s.pages))
	mux.HandleFunc("GET /api/v1/container", s.present(s.detailed))
	mux.HandleFunc("GET /api/v1/snapshot", s.present(s.snapshot))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if page == nil || !strings.Contains(r.Header.Get("Accept"), "text/html") {
			index(w, r)
			return
		}
		w.Header().Set("Vary", "Accept")
		sendFile(w, r, page, "index.html")
	})
	if page != nil {
		mux.HandleFunc("GET /assets/{name...}", func(w http.ResponseWriter, r *http.Request) {
			sendFile(w, r, page, "assets/"+r.PathValue("name"))
		})
	}
}

// sendFile sends one file of the page. A browser asks each time whether it has changed: its name stays.
func sendFile(w http.ResponseWriter, r *http.Request, files fs.FS, name string) {
	data, err := fs.ReadFile(files, name) // which refuses names with ..
	if err != nil {
		http.NotFound(w, r)
		return
	}
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	h := w.Header()
	h.Set("Content-Security-Policy", PagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	kind := mime.TypeByExtension(path.Ext(name))
	if kind == "" {
		kind = "application/octet-stream"
	}
	h.Set("Content-Type", kind)
	_, _ = w.Write(data) // who is gone needs no answer
}

// present answers with a page of the present scene. It bounds who asks as show does.
func (s *Site) present(render func(*http.Request, *scene) (*page, error)) http.HandlerFunc {
	return s.pages.with(func(r *http.Request) (*page, error) {
		leave, err := s.pages.place(clientOf(r))
		if err != nil {
			return nil, err
		}
		defer leave()
		scene, err := s.watch.awaited(r.Context())
		if err != nil {
			return nil, err
		}
		return render(r, scene)
	})
}

// viewed is one view.
func (s *Site) viewed(_ *http.Request, scene *scene) (*page, error) {
	return s.pages.share(&scene.rendered, dataFormat("view", scene.view), report.Status{})
}

// detailed is one container. Few ask for the same one at the same time: nothing is kept for others.
func (s *Site) detailed(r *http.Request, scene *scene) (*page, error) {
	d, _, err := s.watch.detail(scene, r.URL.Query().Get("id"))
	if err != nil {
		return nil, err
	}
	return s.pages.share(&rendered{}, dataFormat("container", d), report.Status{})
}

// snapshot is a file with the last 15 minutes.
func (s *Site) snapshot(_ *http.Request, scene *scene) (*page, error) {
	name := fmt.Sprintf("plimsoll-%s-%s.json.gz", fileWord(scene.view.Node),
		scene.view.Now.UTC().Format("20060102T150405Z"))
	return s.pages.share(&scene.rendered, format{name, fileType, func(w io.Writer, _ report.Status) error {
		return s.watch.writeSnapshot(w, scene)
	}}, report.Status{})
}

// fileWord keeps of a host name what may be in the name of a file.
func fileWord(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", r) {
			return r
		}
		return -1
	}, name)
}
