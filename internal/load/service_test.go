package load

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTextIsDecidedByItsSeed(t *testing.T) {
	a := Text(1, 10000)
	if len(a) != 10000 || !bytes.Equal(a, Text(1, 10000)) || bytes.Equal(a, Text(2, 10000)) {
		t.Error("text is not a function of seed and size")
	}
}

func TestHandlerCompressesWhatWasAskedFor(t *testing.T) {
	text := Text(1, 1000)
	server := httptest.NewServer(Handler(text))
	defer server.Close()
	for _, size := range []int{0, 1, 1000, 2500} {
		answer := httptest.NewRecorder()
		Handler(text).ServeHTTP(answer, httptest.NewRequest("GET", fmt.Sprintf("/gzip?bytes=%d", size), nil))
		unzip, err := gzip.NewReader(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(unzip)
		if want := bytes.Repeat(text, 3)[:size]; err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
		client := NewClient(1)
		defer client.Close()
		if err := client.Get(t.Context(), fmt.Sprintf("%s/gzip?bytes=%d", server.URL, size)); err != nil {
			t.Error(err)
		}
	}
}

func TestClientReportsAWrongAnswer(t *testing.T) {
	server := httptest.NewServer(Handler(Text(1, 10)))
	defer server.Close()
	client := NewClient(1)
	defer client.Close()
	for _, query := range []string{"bytes=-1", "bytes=x", "", fmt.Sprintf("bytes=%d", MaxSize+1)} {
		if err := client.Get(t.Context(), server.URL+"/gzip?"+query); err == nil ||
			!strings.Contains(err.Error(), "400") {
			t.Errorf("%q: error %v", query, err)
		}
	}
}

// TestClientWantsWork has answers that cost nothing: a load of them would measure nothing.
func TestClientWantsWork(t *testing.T) {
	for _, c := range []struct {
		code     int
		encoding string
		ok       bool
	}{{200, "gzip", true}, {503, "gzip", false}, {200, "", false}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", c.encoding)
			w.WriteHeader(c.code)
		}))
		client := NewClient(1)
		if err := client.Get(t.Context(), server.URL); (err == nil) != c.ok {
			t.Errorf("%d %q: error %v", c.code, c.encoding, err)
		}
		client.Close()
		server.Close()
	}
}

// TestServeWaitsForItsGate holds the order that puts the service into its group before it opens a port, and its end
// with its parent.
func TestServeWaitsForItsGate(t *testing.T) {
	gate, open := io.Pipe()
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(gate, out) }()
	fmt.Fprintln(open)
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil || !strings.HasPrefix(address, "127.0.0.1:") {
		t.Fatalf("address %q, %v", address, err)
	}
	client := NewClient(1)
	defer client.Close()
	url := "http://" + strings.TrimSpace(address) + "/gzip?bytes=10"
	if err := client.Get(t.Context(), url); err != nil {
		t.Error(err)
	}
	open.Close()
	if err := <-ended; err != nil {
		t.Errorf("end: %v", err)
	}
	if err := client.Get(t.Context(), url); err == nil {
		t.Error("serves after its parent's end")
	}
	if err := Serve(strings.NewReader(""), io.Discard); err == nil {
		t.Error("serves without a word to start")
	}
}
