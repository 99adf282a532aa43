package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
	"plimsoll/lab/frame"
)

const (
	connections = 32
	grace       = 2 * time.Second        // for the last answers
	wake        = 100 * time.Millisecond // how often the end of the context is checked for
	// requests under way on a connection; one that is due beyond is an error and is not sent
	fullAt = 4096
)

// generator puts an open-loop load on memcached. One thread sends each request when it is due, also while earlier ones
// are under way, and receives the answers; between, it sleeps in the kernel to the nanosecond. A goroutine for each
// request would cost more than memcached's answer.
type generator struct {
	conns []*connection
	polls []unix.PollFd
}

// connection has its requests answered in order: a latency is that of the oldest one under way.
type connection struct {
	fd       int
	question []byte
	answer   []byte
	at       int             // bytes of the next answer that have come
	under    []time.Duration // when those under way were due
}

func dial(address string) (*generator, error) {
	g := &generator{}
	for i := range connections {
		fd, err := frame.Dial(address)
		if err == nil {
			g.conns = append(g.conns, &connection{fd: fd, question: frame.MemcachedGet(i),
				answer: frame.MemcachedAnswer(i)})
			g.polls = append(g.polls, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			err = unix.SetNonblock(fd, true)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connect to memcached: %w", err), g.close())
		}
	}
	return g, nil
}

func (g *generator) close() error {
	return experiment.Each(g.conns, func(c *connection) error { return unix.Close(c.fd) })
}

// run sends requests when they are due and waits for the last answer.
func (g *generator) run(ctx context.Context, due []time.Duration) (*load.Outcome, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out := &load.Outcome{Latency: load.NewLatencies()}
	start := time.Now()
	for next := 0; ; {
		now := time.Since(start)
		for ; next < len(due) && due[next] <= now; next++ {
			out.Late = max(out.Late, now-due[next])
			if err := g.conns[next%len(g.conns)].send(due[next]); err != nil {
				out.Errors++
				out.Cause = errors.Join(out.Cause, err)
			}
		}
		left := wake
		if next < len(due) {
			left = min(left, due[next]-now)
		} else if under := g.under(); under == 0 || ctx.Err() != nil || now > due[len(due)-1]+grace {
			out.Errors += g.dropPending()
			return out, context.Cause(ctx)
		}
		if ctx.Err() != nil {
			next = len(due)
		}
		if err := g.take(left, start, out); err != nil {
			return out, err
		}
	}
}

// under counts the requests that wait for an answer.
func (g *generator) under() (n int) {
	for _, c := range g.conns {
		n += len(c.under)
	}
	return n
}

// dropPending drops the requests without an answer.
func (g *generator) dropPending() int {
	n := g.under()
	for _, c := range g.conns {
		c.under = nil
	}
	return n
}

// take waits for answers, at most for the given time, and receives those that have come.
func (g *generator) take(atMost time.Duration, start time.Time, out *load.Outcome) error {
	t := unix.NsecToTimespec(int64(max(atMost, 0)))
	n, err := unix.Ppoll(g.polls, &t, nil)
	if n <= 0 || err != nil {
		if err == unix.EINTR {
			err = nil
		}
		return err
	}
	now := time.Since(start)
	for i, p := range g.polls {
		if p.Revents == 0 {
			continue
		}
		if err := g.conns[i].receive(now, out.Latency); err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
	}
	return nil
}

var errFull = errors.New("too many requests under way")

// send sends a request that is due.
func (c *connection) send(due time.Duration) error {
	if len(c.under) >= fullAt {
		return errFull
	}
	n, err := unix.Write(c.fd, c.question)
	if err == nil && n < len(c.question) {
		err = fmt.Errorf("only %d bytes of a request were sent", n)
	}
	if err == nil {
		c.under = append(c.under, due)
	}
	return err
}

// receive reads the answers that have come.
func (c *connection) receive(now time.Duration, to *load.Latencies) error {
	var buffer [16 << 10]byte
	n, err := unix.Read(c.fd, buffer[:])
	if err == unix.EAGAIN {
		return nil
	}
	if err == nil && n == 0 {
		err = errors.New("memcached has closed it")
	}
	if err != nil {
		return err
	}
	return c.match(buffer[:n], now, to)
}

// match compares the bytes received with the answers that are due, and records the latency of each complete answer.
func (c *connection) match(data []byte, now time.Duration, to *load.Latencies) error {
	for len(data) > 0 {
		n := min(len(data), len(c.answer)-c.at)
		if len(c.under) == 0 || !bytes.Equal(data[:n], c.answer[c.at:c.at+n]) {
			return fmt.Errorf("unexpected answer %q", data[:n])
		}
		data = data[n:]
		if c.at += n; c.at == len(c.answer) {
			to.Record(now - c.under[0])
			c.under, c.at = c.under[1:], 0
		}
	}
	return nil
}
