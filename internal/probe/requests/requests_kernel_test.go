package requests

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/responsetime"
)

func TestMain(m *testing.M) { cgrouptest.Main(m, map[string]func(){"serve": serve}) }

const ms = time.Millisecond

// serve answers HTTP/1 and HTTP/2 without TLS: /sleep?us=N after so long, /spin?us=N after so much work.
func serve() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	mux := http.NewServeMux()
	length := func(r *http.Request) time.Duration {
		us, _ := strconv.Atoi(r.FormValue("us"))
		return time.Duration(us) * time.Microsecond
	}
	mux.HandleFunc("/sleep", func(w http.ResponseWriter, r *http.Request) { time.Sleep(length(r)); io.WriteString(w, "ok") })
	mux.HandleFunc("/spin", func(w http.ResponseWriter, r *http.Request) {
		for end := time.Now().Add(length(r)); time.Now().Before(end); {
		}
		io.WriteString(w, "ok")
	})
	mux.HandleFunc("/parts", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		time.Sleep(length(r))
		io.WriteString(w, "last")
	})
	mux.HandleFunc("/upload", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	})
	panic((&http.Server{Handler: mux, Protocols: both}).Serve(l))
}

// server starts one in a group, and returns its address.
func server(t testing.TB, g *cgrouptest.Group) string {
	t.Helper()
	cmd, lines, _ := cgrouptest.Dialogue(t, "serve")
	g.Move(cmd.Process.Pid)
	if !lines.Scan() {
		t.Fatal("the server does not listen")
	}
	return lines.Text()
}

// open starts a probe that is gone when the test ends.
func open(t testing.TB, o Options) *Probe {
	t.Helper()
	p, err := Open(o)
	if errors.Is(err, ErrTracepoint) && !cgrouptest.AtLeast(cgrouptest.Release(t), "6.3") {
		cgrouptest.Elsewhere(t, "tier vm, on 6.12", "%v", err)
	}
	if err != nil {
		if v := (*ebpf.VerifierError)(nil); errors.As(err, &v) {
			t.Logf("%+v", v)
		}
		cgrouptest.Skip(t, "%v", err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Clockless(); err != nil {
		t.Errorf("%+v", err)
	}
	return p
}

// follow starts to follow a group.
func follow(t testing.TB, p *Probe, g *cgrouptest.Group) (read func() responsetime.Counts) {
	t.Helper()
	id, err := g.Tree().Inode(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Set(id), p.Start()); err != nil {
		t.Fatal(err)
	}
	return func() responsetime.Counts {
		t.Helper()
		c, err := p.Read(id)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// get sends n requests one after the other on one connection, which it closes.
func get(t testing.TB, address, path string, n int) []time.Duration {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return ask(t, c, path, n)
}

func ask(t testing.TB, c net.Conn, path string, n int) (took []time.Duration) {
	t.Helper()
	in := bufio.NewReader(c)
	for range n {
		began := time.Now()
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(in, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	return took
}

// emulated says that the CPU is emulated, so that no bound on time applies.
func emulated() bool { return os.Getenv("PLIMSOLL_EMULATED") != "" }

// TestKernelCounts: each request of HTTP/1 is counted once, also that of a connection which is closed after it.
func TestKernelCounts(t *testing.T) {
	g := cgrouptest.New(t)
	address := server(t, g)
	read := follow(t, open(t, Options{}), g)
	get(t, address, "/sleep?us=2000", 50)
	for range 10 {
		get(t, address, "/sleep?us=2000", 1)
	}
	c := settled(read, 60)
	r := responsetime.Judge(c, time.Second)
	if r.N != 60 || r.Withheld != "" || r.Response == nil || r.Response.N != 60 || *r.Response.P50 < 2*ms {
		t.Errorf("%+v", r)
	}
}

// settled waits until so many requests have ended.
func settled(read func() responsetime.Counts, want uint64) responsetime.Counts {
	c := read()
	for end := time.Now().Add(5 * time.Second); c.Answered() < want && time.Now().Before(end); c = read() {
		time.Sleep(ms)
	}
	return c
}
