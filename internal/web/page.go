package web

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"plimsoll/internal/report"
)

// format is one way to show a snapshot.
type format struct {
	name        string
	contentType string
	write       func(w io.Writer, s report.Status) error
}

const jsonType = "application/json"

// fileType is the type of an answer that is a file compressed by gzip. The format's name is the file's.
const fileType = "application/gzip"

func statusFormat() format {
	return format{"status", jsonType, func(w io.Writer, s report.Status) error { return report.WriteJSON(w, s) }}
}

func reportFormat() format {
	return format{"report", jsonType, func(w io.Writer, s report.Status) error {
		return report.WriteJSON(w, report.Of(s))
	}}
}

// dataFormat is the JSON of something that is no snapshot of the agent.
func dataFormat(name string, v any) format {
	return format{name, jsonType, func(w io.Writer, _ report.Status) error { return json.NewEncoder(w).Encode(v) }}
}

// metricsFormat is the text format of Prometheus, the one that all versions of it take.
func metricsFormat(d report.Detail) format {
	return format{"metrics", "text/plain; version=0.0.4; charset=utf-8",
		func(w io.Writer, s report.Status) error { return writeMetrics(w, s, d) }}
}

func writeMetrics(w io.Writer, s report.Status, d report.Detail) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(report.NewCollector(func() (report.Status, error) { return s, nil }, d))
	r, err := http.NewRequest(http.MethodGet, "/metrics", nil) // without headers: text, not compressed
	if err != nil {
		return err
	}
	to := &sink{Writer: w, header: http.Header{}}
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).ServeHTTP(to, r)
	if to.code != 0 && to.code != http.StatusOK {
		return fmt.Errorf("metrics: %d", to.code)
	}
	return nil
}

// sink is an http.ResponseWriter that keeps nothing.
type sink struct {
	io.Writer
	header http.Header
	code   int
}

func (s *sink) Header() http.Header { return s.header }

func (s *sink) WriteHeader(code int) { s.code = code }

// page is a rendered answer. It is kept compressed, in a tenth to a twentieth of the text's size. So slow readers cost
// little memory, and most programs accept compressed answers.
type page struct {
	format
	done   chan struct{} // closed when the answer is complete
	packed net.Buffers   // gzip
	err    error
}

func newPage(v format) *page { return &page{format: v, done: make(chan struct{})} }

// packer compresses the answers of a side. The compressor is kept: it is about a megabyte.
type packer struct {
	zip    *gzip.Writer
	pieces *bufio.Writer
}

// packedPiece is how long the pieces of an answer are at most. A snapshot file may have 16 MB: one piece that grows by
// doubling would take three times as much.
const packedPiece = 64 << 10

// buffers takes pieces.
type buffers struct{ net.Buffers }

func (b *buffers) Write(piece []byte) (int, error) {
	b.Buffers = append(b.Buffers, bytes.Clone(piece))
	return len(piece), nil
}

// render renders a snapshot into a page.
func (d *side) render(p *page, s report.Status) {
	d.rendering <- struct{}{}
	defer func() { <-d.rendering }()
	defer close(p.done)
	p.err = fmt.Errorf("render %s: interrupted", p.name) // should it panic
	var err error
	if p.packed, err = d.packer.pack(func(w io.Writer) error { return p.write(w, s) }); err != nil {
		err = fmt.Errorf("render %s: %w", p.name, err)
	}
	p.err = err
}

func (k *packer) pack(write func(io.Writer) error) (net.Buffers, error) {
	var b buffers
	if k.zip == nil {
		k.pieces = bufio.NewWriterSize(&b, packedPiece)
		k.zip, _ = gzip.NewWriterLevel(k.pieces, gzip.BestSpeed) // the level is a valid one
	} else {
		k.pieces.Reset(&b)
		k.zip.Reset(k.pieces)
	}
	if err := write(k.zip); err != nil {
		return nil, err
	}
	if err := errors.Join(k.zip.Close(), k.pieces.Flush()); err != nil {
		return nil, err
	}
	return b.Buffers, nil
}

// send writes a page to the client.
func (d *side) send(w http.ResponseWriter, r *http.Request, p *page) {
	conn := http.NewResponseController(w)
	until := func(t time.Time) { _ = conn.SetWriteDeadline(t) } // what cannot be bounded is bounded by writeTimeout
	end, ok := d.writing.begin(func() { until(time.Unix(1, 0)) })
	if !ok {
		d.fail(w, busy("too many answers are being written"))
		return
	}
	defer end()
	until(time.Now().Add(answerTime))
	h := w.Header()
	h.Set("Content-Type", p.contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept-Encoding")
	if err := p.writeTo(w, r); err != nil {
		d.log.Debug("answer", "error", err) // the client is gone, or was cut off
	}
}

func (p *page) writeTo(w http.ResponseWriter, r *http.Request) error {
	file, h, packed := p.contentType == fileType, w.Header(), slices.Clone(p.packed) // which is read away
	if file || takesGzip(r.Header.Get("Accept-Encoding")) {
		if file {
			h.Set("Content-Disposition", `attachment; filename="`+p.name+`"`)
		} else {
			h.Set("Content-Encoding", "gzip")
		}
		size := 0
		for _, piece := range packed {
			size += len(piece)
		}
		h.Set("Content-Length", strconv.Itoa(size))
		_, err := packed.WriteTo(w)
		return err
	}
	text, err := gzip.NewReader(&packed)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, text)
	return err
}

// takesGzip reads an Accept-Encoding (RFC 9110, 12.5.3).
func takesGzip(accept string) bool {
	for item := range strings.SplitSeq(accept, ",") {
		name, weight, _ := strings.Cut(item, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		_, q, given := strings.Cut(strings.TrimSpace(weight), "=")
		value, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return !given || err == nil && value > 0
	}
	return false
}
