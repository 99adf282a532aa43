package requests

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// What a program costs at a request, as often as the server answers: the kernel's figure,
// with the cost of measuring it.
//
//	go test -run '^$' -bench Answer -benchtime 20000x ./internal/probe/requests
func BenchmarkAnswer(b *testing.B) {
	w := newWorld(b, Options{})
	w.start()
	w.addr = serveIn(b, w.group.Child("inner"), "echo")
	c, err := net.Dial("tcp4", w.addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	text := bytes.Repeat([]byte{'x'}, 100)
	for b.Loop() {
		if _, err := c.Write(text); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, text); err != nil {
			b.Fatal(err)
		}
	}
	costs, err := w.r.Cost()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range costs {
		if c.Runs > 1000 {
			b.ReportMetric(float64(c.Total)/float64(c.Runs), "ns/"+c.Program)
		}
	}
}
