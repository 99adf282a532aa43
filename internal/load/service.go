package load

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"
)

const (
	textSize = 1 << 20
	// MaxSize bounds the work that one request may ask for.
	MaxSize = 1 << 30
)

// Text makes a text of words, the frequent ones far more frequent than the rest, as in a language. Gzip gets it to
// about two fifths of its size.
func Text(seed uint64, size int) []byte {
	rng := rand.New(rand.NewPCG(seed, 0))
	words := make([][]byte, 4096)
	for i := range words {
		words[i] = make([]byte, 2+rng.IntN(9))
		for j := range words[i] {
			words[i][j] = byte('a' + rng.IntN(26))
		}
	}
	var text bytes.Buffer
	for text.Len() < size {
		r := rng.Float64()
		text.Write(words[int(r*r*r*float64(len(words)))])
		text.WriteByte(' ')
	}
	return text.Bytes()[:size]
}

// Handler answers /gzip?bytes=N with N bytes of the text, compressed. The text begins anew as often as is needed; it
// is longer than gzip looks back, so each pass costs the same.
func Handler(text []byte) http.Handler {
	type worker struct {
		out bytes.Buffer
		zip *gzip.Writer
	}
	pool := sync.Pool{New: func() any { return &worker{zip: gzip.NewWriter(nil)} }}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /gzip", func(w http.ResponseWriter, r *http.Request) {
		size, err := strconv.Atoi(r.FormValue("bytes"))
		if err != nil || size < 0 || size > MaxSize {
			http.Error(w, fmt.Sprintf("bytes=%q is not a number from 0 to %d", r.FormValue("bytes"), MaxSize),
				http.StatusBadRequest)
			return
		}
		job := pool.Get().(*worker)
		defer pool.Put(job)
		job.out.Reset()
		job.zip.Reset(&job.out)
		for left := size; left > 0; left -= len(text) {
			job.zip.Write(text[:min(left, len(text))]) // into memory: cannot fail
		}
		job.zip.Close()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(job.out.Len()))
		w.Write(job.out.Bytes()) // the reader may have gone: its own affair
	})
	return mux
}

// Serve is the whole life of the service's process. It waits for a line on in, so that its parent can put it into a
// control group before it does anything; opens a port on the loopback, writes the address to out, and serves until in
// ends, which it does when the parent dies, however it dies.
func Serve(in io.Reader, out io.Writer) error {
	// Go derives GOMAXPROCS from the quota and follows its changes (Go 1.25, internal/runtime/cgroup). The service
	// must be the same one in all modes.
	runtime.GOMAXPROCS(runtime.NumCPU())
	gate := bufio.NewReader(in)
	if _, err := gate.ReadString('\n'); err != nil {
		return fmt.Errorf("demo service: wait for the word to start: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("demo service: %w", err)
	}
	server := &http.Server{Handler: Handler(Text(1, textSize)), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		io.Copy(io.Discard, gate)
		server.Close()
	}()
	if _, err := fmt.Fprintln(out, listener.Addr()); err != nil {
		return fmt.Errorf("demo service: tell the address: %w", err)
	}
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return fmt.Errorf("demo service: %w", err)
	}
	return nil
}
