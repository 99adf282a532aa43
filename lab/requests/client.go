package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
	"plimsoll/lab/frame"
)

// connections are few, so that the threads of the client do not wait for each other. Emulated CPUs take turns: any two
// threads wait for each other there, however many CPUs they have, so that there is one.
func (t target) connections() int {
	if t.emulated {
		return 1
	}
	return 8
}

// collected are the times of all connections.
type collected struct {
	mu   sync.Mutex
	list []time.Duration
}

func (c *collected) add(list ...time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, list...)
}

func (c *collected) sorted() []time.Duration {
	slices.Sort(c.list)
	return c.list
}

// load puts the load on a server, and returns how long each request took, sorted. Begin is called once each connection
// has had an answer: handshakes and first requests are not measured.
func (t target) load(ctx context.Context, seed uint64, length time.Duration,
	begin func() error) ([]time.Duration, error) {
	if t.several {
		return t.loadBeside(ctx, seed, length, begin)
	}
	var open []*client
	connections := t.connections()
	defer func() {
		for _, c := range open {
			c.conn.Close()
		}
	}()
	for range connections {
		c, err := t.open()
		if err != nil {
			return nil, err
		}
		open = append(open, c)
	}
	if err := begin(); err != nil {
		return nil, err
	}
	// A thread that comes back from a system call gets a processor of Go's at once, and no collector takes one from it.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2 * connections))
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	prepare := keepAwake
	if t.emulated {
		prepare = shortenTurns
	}
	stop, err := prepare()
	if err != nil {
		return nil, err
	}
	defer stop()
	var times collected
	errs := make(chan error, connections)
	for i, c := range open {
		due := load.Poisson(seed, uint64(i), t.rate/float64(connections), length)
		go func() {
			list, err := c.run(ctx, due)
			times.add(list...)
			errs <- err
		}()
	}
	for range connections {
		err = errors.Join(err, <-errs)
	}
	return times.sorted(), err
}

// client is one connection.
type client struct {
	conn   *blocking
	stream io.ReadWriter
	in     *bufio.Reader
	ask    func(io.Writer, *bufio.Reader) error
}

func (t target) open() (*client, error) {
	conn, err := dial(t.address())
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn, stream: conn, ask: t.ask}
	if t.tls {
		c.stream = tls.Client(conn, insecure)
	}
	c.in = bufio.NewReaderSize(c.stream, 64<<10)
	if err := c.ask(c.stream, c.in); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// run asks when a request is due, on a real-time thread.
func (c *client) run(ctx context.Context, due []time.Duration) ([]time.Duration, error) {
	runtime.LockOSThread() // the thread ends with the goroutine
	if err := errors.Join(experiment.Bind(unix.Gettid(), clientCPU), schedule(unix.SCHED_FIFO, 1)); err != nil {
		return nil, fmt.Errorf("make a client a real-time thread: %w", err)
	}
	list := make([]time.Duration, 0, len(due))
	for start, i := time.Now(), 0; i < len(due) && ctx.Err() == nil; i++ {
		rest := unix.NsecToTimespec(int64(max(0, due[i]-time.Since(start))))
		_ = unix.Nanosleep(&rest, nil) // a signal makes it early, and harms nothing
		begin := time.Now()
		if err := c.ask(c.stream, c.in); err != nil {
			return list, err
		}
		list = append(list, time.Since(begin))
	}
	return list, context.Cause(ctx)
}

// keepAwake keeps the clients' CPU busy with a thread that runs when nothing else does, until stop is called: a host
// gives an idle CPU away, and is late to give it back when an answer arrives.
func keepAwake() (stop func(), err error) {
	var stopped atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		if errors.Join(experiment.Bind(unix.Gettid(), clientCPU), schedule(unix.SCHED_IDLE, 0)) != nil {
			return // the clients are measured less well
		}
		for !stopped.Load() {
		}
	}()
	return func() {
		stopped.Store(true)
		<-done
	}, nil
}

// turn is how long an emulated CPU works at most until another one does.
const turn = 30 * time.Microsecond

// shortenTurns has emulated CPUs take shorter turns: a turn ends when the next timer of the machine is due, which may
// be in milliseconds, and so long a client would wait for an answer that is there.
// The timer is on a CPU that does nothing else.
func shortenTurns() (stop func(), err error) {
	fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Size:   unix.PERF_ATTR_SIZE_VER0, Sample: uint64(turn)}, -1, timerCPU, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("start a timer of %s on CPU %d: %w", turn, timerCPU, err)
	}
	return func() { unix.Close(fd) }, nil
}

// schedule gives the calling thread a policy and a priority.
func schedule(policy, priority uint32) error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Policy: policy, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
		Priority: priority}, 0)
}

// blocking is a connection whose calls block their thread: no other goroutine has to run to wake it.
type blocking struct {
	net.Conn // for crypto/tls; nothing of it is used but Read, Write and Close
	fd       int
}

func dial(address string) (*blocking, error) {
	fd, err := frame.Dial(address)
	if err != nil {
		return nil, err
	}
	wait := unix.NsecToTimeval(int64(patience))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &blocking{fd: fd}, nil
}

// Read implements net.Conn.
func (c *blocking) Read(to []byte) (int, error) {
	for {
		n, err := unix.Read(c.fd, to)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0 && len(to) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Write implements net.Conn.
func (c *blocking) Write(from []byte) (n int, err error) {
	for n < len(from) && err == nil {
		var m int
		if m, err = unix.Write(c.fd, from[n:]); errors.Is(err, unix.EINTR) {
			m, err = 0, nil
		}
		n += max(m, 0)
	}
	return n, err
}

// Close implements net.Conn.
func (c *blocking) Close() error { return unix.Close(c.fd) }
