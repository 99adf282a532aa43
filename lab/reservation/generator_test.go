package main

import (
	"bufio"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/load"
	"plimsoll/lab/frame"
)

// TestMatch passes answers in pieces: each has the latency of the oldest request under way.
func TestMatch(t *testing.T) {
	c := &connection{answer: frame.MemcachedAnswer(0), under: []time.Duration{0, 10 * ms, 20 * ms}}
	two := append(frame.MemcachedAnswer(0), frame.MemcachedAnswer(0)...)
	l := load.NewLatencies()
	for _, step := range []struct {
		from, to int
		now      time.Duration
		recorded int64
	}{{0, 5, 1 * ms, 0}, {5, len(two) - 1, 7 * ms, 1}, {len(two) - 1, len(two), 30 * ms, 2}} {
		if err := c.match(two[step.from:step.to], step.now, l); err != nil {
			t.Fatal(err)
		}
		if l.Count() != step.recorded {
			t.Errorf("%d answers after %d bytes, want %d", l.Count(), step.to, step.recorded)
		}
	}
	if low, high := l.Quantile(0), l.Max(); low > 8*ms || low < 7*ms || high > 21*ms || high < 20*ms ||
		len(c.under) != 1 {
		t.Errorf("latencies from %v to %v, %d under way; want 7ms, 20ms and 1", low, high, len(c.under))
	}
	if err := c.match([]byte("SERVER_ERROR"), 0, l); err == nil {
		t.Error("a wrong answer is taken")
	}
	if err := (&connection{answer: frame.MemcachedAnswer(0)}).match(frame.MemcachedAnswer(0), 0, l); err == nil {
		t.Error("an answer without a request is accepted")
	}
}

// serve answers as memcached does, from the second request on each connection after a while.
func serve(t *testing.T, delay time.Duration) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines, n := bufio.NewScanner(c), 0; lines.Scan(); n++ {
					if n > 0 {
						time.Sleep(delay)
					}
					k := strings.TrimPrefix(lines.Text(), "get ")
					c.Write([]byte(strings.Replace(string(frame.MemcachedAnswer(0)), frame.MemcachedKey(0), k, 1)))
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestLoadIsOpen has a server that is slow: the requests are sent all the same, and wait.
func TestLoadIsOpen(t *testing.T) {
	g, err := dial(serve(t, 150*ms))
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	due := load.Constant(3*connections*10, 100*ms) // three requests on each connection
	out, err := g.run(t.Context(), due)
	if err != nil || out.Errors != 0 || out.Requests() != len(due) {
		t.Fatalf("%d requests, %d errors, %v", out.Requests(), out.Errors, err)
	}
	// The third on a connection is due 67 ms after the first, and answered 300 ms after it.
	if p20, p99 := out.Latency.Quantile(0.2), out.Latency.Quantile(0.99); p99 < 200*ms || p20 > p99/2 {
		t.Errorf("p20 %v, p99 %v", p20, p99)
	}
}

func TestLoadEnds(t *testing.T) {
	g, err := dial(serve(t, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
	defer cancel()
	if _, err := g.run(ctx, []time.Duration{0, ms, time.Hour}); err == nil {
		t.Error("no error where the context has ended")
	}
	out, err := g.run(t.Context(), load.Constant(2*connections*10, 100*ms))
	if err != nil || out.Errors == 0 {
		t.Errorf("%d errors, %v: the second request of each connection is never answered", out.Errors, err)
	}
}
