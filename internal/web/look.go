package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"plimsoll/internal/report"
)

// pagePolicy has the page take scripts and styles from this server only, and no page show it in a frame.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src " +
	"'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// look adds what the page needs to a site.
func (s *Site) look(mux *http.ServeMux, page fs.FS) {
	mux.HandleFunc("GET /api/v1/view", s.viewed)
	mux.HandleFunc("GET /api/v1/live", s.watch.live(s.pages))
	mux.HandleFunc("GET /api/v1/container", s.detailed)
	mux.HandleFunc("GET /api/v1/snapshot", s.snapshot)
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
	h.Set("Content-Security-Policy", pagePolicy)
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

// viewed is one view.
func (s *Site) viewed(w http.ResponseWriter, r *http.Request) {
	s.seen(w, r, func(scene *scene) (any, error) { return scene.view, nil })
}

// detailed is one container.
func (s *Site) detailed(w http.ResponseWriter, r *http.Request) {
	s.seen(w, r, func(scene *scene) (any, error) {
		d, _, err := s.watch.detail(scene, r.URL.Query().Get("id"))
		return d, err
	})
}

// seen answers with something that is made of the present scene.
func (s *Site) seen(w http.ResponseWriter, r *http.Request, make func(*scene) (any, error)) {
	s.present(w, r, func(scene *scene) error {
		v, err := make(scene)
		if err != nil {
			return err
		}
		p := newPage(format{r.URL.Path, jsonType, func(w io.Writer, _ report.Status) error {
			return json.NewEncoder(w).Encode(v)
		}})
		s.pages.render(p, report.Status{})
		if p.err == nil {
			s.pages.send(w, r, p)
		}
		return p.err
	})
}

// present has the present scene shown. It bounds who asks as show does; an error is the answer where show gave none.
func (s *Site) present(w http.ResponseWriter, r *http.Request, show func(*scene) error) {
	leave, err := s.pages.place(clientOf(r))
	if err == nil {
		defer leave()
		var scene *scene
		if scene, err = s.watch.awaited(r.Context()); err == nil {
			err = show(scene)
		}
	}
	if err != nil {
		s.pages.fail(w, err)
	}
}

// snapshot is a file with the last 15 minutes.
func (s *Site) snapshot(w http.ResponseWriter, r *http.Request) {
	s.present(w, r, func(scene *scene) error {
		s.pages.rendering <- struct{}{}
		var b bytes.Buffer
		err := s.watch.snapshot(scene).Write(&b)
		<-s.pages.rendering
		if err != nil {
			return err
		}
		name := fmt.Sprintf("plimsoll-%s-%s.json.gz", fileWord(scene.view.Node),
			scene.view.Now.UTC().Format("20060102T150405Z"))
		h := w.Header()
		h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
		if err := newStream(w, "application/gzip").write(b.Bytes()); err != nil {
			s.log.Debug("answer", "error", err) // it was begun: there is no other answer
		}
		return nil
	})
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
