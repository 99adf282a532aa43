package requests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/probe"
)

const ms = time.Millisecond

// behind is how long a program runs after the client has what was sent, at most.
const behind = 20 * ms

func TestMain(m *testing.M) {
	cgrouptest.Main(m, map[string]func(){"server": serve, "multipath": func() { listen(true, answer) },
		"echo": func() { listen(false, echo) }})
}

// order is what a client asks of the server.
type order struct {
	wait  time.Duration // before the first byte of the answer
	burn  time.Duration // CPU time before it
	sends int
	gap   time.Duration // between two sends
}

func (o order) String() string { return fmt.Sprintf("%d %d %d %d\n", o.wait, o.burn, o.sends, o.gap) }

func serve() { listen(false, answer) }

// listen is a server.
func listen(multipath bool, answer func(net.Conn)) {
	c := net.ListenConfig{}
	c.SetMultipathTCP(multipath)
	l, err := c.Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	for {
		conn, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		go answer(conn)
	}
}

// echo answers with what it receives.
func echo(conn net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}) // through user space; the client ends it
}

// answer does as it is asked, line by line. A line that begins with "+" is answered beside the next ones.
func answer(conn net.Conn) {
	defer conn.Close()
	var writing sync.Mutex
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		line, beside := strings.CutPrefix(lines.Text(), "+")
		var o order
		if _, err := fmt.Sscan(line, &o.wait, &o.burn, &o.sends, &o.gap); err != nil {
			return
		}
		if beside {
			go o.send(conn, &writing)
			continue
		}
		o.send(conn, &writing)
	}
}

func (o order) send(conn net.Conn, writing *sync.Mutex) {
	time.Sleep(o.wait)
	runtime.LockOSThread()
	for begin := used(); used() < begin+o.burn; {
	}
	runtime.UnlockOSThread()
	writing.Lock()
	defer writing.Unlock()
	for n := range o.sends {
		if n > 0 {
			time.Sleep(o.gap)
		}
		end := byte('.')
		if n == o.sends-1 {
			end = '\n'
		}
		if _, err := conn.Write([]byte{'x', end}); err != nil {
			return
		}
	}
}

// used is the CPU time of the calling thread.
func used() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		os.Exit(1)
	}
	return time.Duration(t.Nano())
}

// world is programs that watch a group with a server, and a connection to it.
type world struct {
	t     testing.TB
	clock *probe.Probe
	r     *Requests
	group *cgrouptest.Group
	id    uint64
	addr  string
}

// threads are the server's.
func (w *world) threads() []int {
	w.t.Helper()
	threads, err := w.group.Tree().Tasks(w.group.Path + "/inner")
	if err != nil || len(threads) == 0 {
		w.t.Fatal(threads, err)
	}
	return threads
}

// stopped does something while the server does nothing.
func (w *world) stopped(do func()) {
	w.t.Helper()
	server := w.threads()[0]
	send := func(s unix.Signal) {
		if err := unix.Kill(server, s); err != nil {
			w.t.Fatal(err)
		}
	}
	send(unix.SIGSTOP)
	defer send(unix.SIGCONT)
	soon(w.t, "stopped", func() bool {
		return !slices.ContainsFunc(w.threads(), func(id int) bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
			return err != nil || !strings.Contains(string(stat), ") T ")
		})
	})
	do()
}

// soon waits until a condition is true.
func soon(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(ms) {
		if time.Now().After(end) {
			t.Fatalf("the server never was: %s", what)
		}
	}
}

// onOneCPU ties the server to a CPU: its threads, and those that they will start.
func (w *world) onOneCPU() {
	w.t.Helper()
	var set unix.CPUSet
	set.Set(0)
	for _, id := range w.threads() {
		if err := unix.SchedSetaffinity(id, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			w.t.Fatal(err)
		}
	}
}

// open loads the programs, which do not run yet.
func open(t testing.TB, o Options) (*probe.Probe, *Requests) {
	t.Helper()
	if err := supported(btf.NewCache()); errors.Is(err, ErrKernel) &&
		!cgrouptest.AtLeast(cgrouptest.Release(t), "6.12") {
		cgrouptest.Elsewhere(t, "the cells of test/vm from 6.12 on", "%v", err)
	}
	clock, err := probe.Open(probe.Options{})
	if err != nil {
		cgrouptest.Skip(t, "%v\nhint: %s", err, probe.Explain(err))
	}
	o.Stats = true
	r, err := Open(clock, o)
	if err != nil {
		if v := (*ebpf.VerifierError)(nil); errors.As(err, &v) {
			t.Logf("%+v", v)
		}
		cgrouptest.Skip(t, "%v\nhint: %s", err, probe.Explain(err))
	}
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), clock.Close()); err != nil {
			t.Error(err)
		}
	})
	return clock, r
}

// newWorld loads the programs, for a group whose servers run in groups inside of it.
func newWorld(t testing.TB, o Options) *world {
	t.Helper()
	w := &world{t: t}
	w.clock, w.r = open(t, o)
	w.group = cgrouptest.New(t)
	var err error
	if w.id, err = w.group.Tree().Inode(w.group.Path); err != nil {
		t.Fatal(err)
	}
	w.watch(w.id)
	return w
}

// serveIn starts a server in a group, and returns its address.
func serveIn(t testing.TB, g *cgrouptest.Group, role string) string {
	t.Helper()
	cmd, lines, _ := cgrouptest.Dialogue(t, role)
	g.Move(cmd.Process.Pid)
	if !lines.Scan() {
		t.Fatal("the server says no address")
	}
	return lines.Text()
}

func (w *world) watch(ids ...uint64) {
	w.t.Helper()
	if err := errors.Join(w.clock.Watch(ids), w.r.Watch(ids)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) start() {
	w.t.Helper()
	if err := w.r.Start(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read() Counts {
	w.t.Helper()
	c, err := w.r.Read(w.id)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// settled reads when n requests are counted since an earlier reading, in one way or another, and the program has run at
// their last send: it does so after the client has the answer.
func (w *world) settled(earlier Counts, n int64) Counts {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(ms) {
		total := w.read()
		c := total.Since(&earlier)
		if c.Requests+c.Doubtful+c.Overtaken == n {
			time.Sleep(behind)
			total = w.read()
			return total.Since(&earlier)
		}
		if time.Now().After(end) {
			w.t.Fatalf("%d requests, %d doubtful, %d overtaken: want %d together", c.Requests, c.Doubtful, c.Overtaken,
				n)
		}
	}
}

// client is a connection to the server.
type client struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func (w *world) connect() *client { return w.connectTo(w.addr) }

func (w *world) connectTo(address string) *client {
	w.t.Helper()
	conn, err := net.DialTimeout("tcp4", address, 10*time.Second)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return &client{w.t, conn, bufio.NewReader(conn)}
}

func (c *client) write(text string) {
	c.t.Helper()
	if _, err := c.conn.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// isRead waits until the server has received and read all that was written.
func (c *client) isRead() {
	c.t.Helper()
	here, server := c.conn.LocalAddr(), c.conn.RemoteAddr()
	soon(c.t, "seen to receive", func() bool { return strings.HasPrefix(c.queues(here, server), "00000000:") })
	soon(c.t, "seen to read", func() bool { return strings.HasSuffix(c.queues(server, here), ":00000000") })
}

// queues are the bytes of a socket that are not acknowledged, and those not read (net/ipv4/tcp_ipv4.c, get_tcp4_sock).
func (c *client) queues(local, remote net.Addr) string {
	c.t.Helper()
	sockets, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(sockets)) {
		if f := strings.Fields(line); len(f) > 4 && f[1] == hex(local) && f[2] == hex(remote) {
			return f[4]
		}
	}
	return "no such socket"
}

// hex is an address as /proc/net/tcp has it.
func hex(a net.Addr) string {
	tcp := a.(*net.TCPAddr)
	ip := tcp.IP.To4()
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], tcp.Port)
}

func (c *client) answer() {
	c.t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.in.ReadString('\n'); err != nil {
		c.t.Fatal(err)
	}
}

// ask sends a request and reads the answer to its end.
func (c *client) ask(o order) time.Duration {
	c.t.Helper()
	begin := time.Now()
	c.write(o.String())
	c.answer()
	return time.Since(begin)
}
