package requests

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/responsetime"
)

// TestKernelParts: an answer in two parts ends with the second, and its first byte is the first.
func TestKernelParts(t *testing.T) {
	g := cgrouptest.New(t)
	address := server(t, g)
	read := follow(t, open(t, Options{}), g)
	get(t, address, "/parts?us=50000", 20)
	r := responsetime.Judge(settled(read, 20), time.Second)
	if r.Withheld != "" || r.Response == nil || *r.Response.P50 < 48*ms || *r.FirstByte.P50 > 25*ms || r.Upload != nil {
		t.Errorf("%+v, %+v, %+v", r, r.Response, r.FirstByte)
	}
}

// TestKernelUpload: the parts of a long request belong together, and the time from the first to the last is its upload.
func TestKernelUpload(t *testing.T) {
	g := cgrouptest.New(t)
	address := server(t, g)
	read := follow(t, open(t, Options{}), g)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	part := strings.Repeat("x", 4096)
	for range 10 {
		fmt.Fprintf(c, "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", 3*len(part), part)
		for range 2 {
			time.Sleep(20 * ms)
			fmt.Fprint(c, part)
		}
		if _, err := io.ReadAtLeast(c, make([]byte, 4096), len("HTTP/1.1 200 OK\r\n\r\n12288")); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	r := responsetime.Judge(settled(read, 10), time.Second)
	if r.Withheld != "" || r.N != 10 || r.Upload == nil || r.Upload.N != 10 || *r.Upload.P50 < 38*ms || *r.Response.P50 > 20*ms {
		t.Errorf("%+v, %+v, %+v", r, r.Upload, r.Response)
	}
}

// TestKernelHTTP2: several requests are open on one connection, and no time is told.
func TestKernelHTTP2(t *testing.T) {
	g := cgrouptest.New(t)
	address := server(t, g)
	read := follow(t, open(t, Options{}), g)
	only := new(http.Protocols)
	only.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: only}}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	for range 4 {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				res, err := client.Get("http://" + address + "/sleep?us=5000")
				if err != nil || res.ProtoMajor != 2 {
					t.Errorf("%+v: %v", res, err)
					return
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
				time.Sleep(time.Duration(n%7) * ms)
			}
		})
	}
	all.Wait()
	if r := responsetime.Judge(read(), time.Second); r.N < 20 || r.Withheld == "" || r.Response != nil {
		t.Errorf("%+v", r)
	}
}

// TestKernelPipelined: a client that has two requests open in turn is found out, though after its begin data never arrive
// while the kernel sees a request open.
func TestKernelPipelined(t *testing.T) {
	g := cgrouptest.New(t)
	address := server(t, g)
	read := follow(t, open(t, Options{}), g)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	const request = "GET /sleep?us=5000 HTTP/1.1\r\nHost: x\r\n\r\n"
	get(t, address, "/sleep?us=100", 1)
	ask(t, c, "/sleep?us=100", 5)
	fmt.Fprint(c, request)
	time.Sleep(2 * ms)
	fmt.Fprint(c, request)
	answer := make([]byte, 4096)
	for range 100 { // one more is asked for as one is answered: one is open at any time
		if _, err := c.Read(answer); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, request)
	}
	c.Close()
	counts := settled(read, 100)
	if r := responsetime.Judge(counts, time.Second); r.Withheld == "" || counts.Doubtful < 90 {
		t.Errorf("%+v, %d in doubt", r, counts.Doubtful)
	}
}

// TestKernelAdopts: the requests of a connection that is older than the programs are counted.
func TestKernelAdopts(t *testing.T) {
	g := cgrouptest.New(t)
	address := server(t, g)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ask(t, c, "/sleep?us=100", 3)
	p := open(t, Options{})
	read := follow(t, p, g)
	ask(t, c, "/sleep?us=100", 3)
	if got := read().Answered(); got != 0 {
		t.Errorf("%d requests were counted of a connection that was not taken over", got)
	}
	if err := p.Adopt(); err != nil || p.Adopted() < 1 {
		t.Fatalf("%v: %d connections", err, p.Adopted())
	}
	ask(t, c, "/sleep?us=2000", 7)
	c.Close()
	if r := responsetime.Judge(settled(read, 7), time.Second); r.N != 7 || *r.Response.P50 < 2*ms {
		t.Errorf("%+v", r)
	}
}

// TestKernelAdoptsInOtherNamespaces: of a connection in another namespace the server's socket is taken over, the client's is not.
func TestKernelAdoptsInOtherNamespaces(t *testing.T) {
	p := open(t, Options{})
	type result struct {
		adopted int64
		err     error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		var r result
		defer func() { done <- r }()
		if r.err = unix.Unshare(unix.CLONE_NEWNET); r.err != nil {
			return
		}
		if r.err = loopback(); r.err != nil {
			return
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if r.err = err; err != nil {
			return
		}
		defer l.Close()
		var list []net.Conn
		for range 3 {
			c, err := net.Dial("tcp", l.Addr().String())
			if r.err = err; err != nil {
				return
			}
			s, err := l.Accept()
			if r.err = err; err != nil {
				return
			}
			list = append(list, c, s)
		}
		before, tid := p.Adopted(), unix.Gettid()
		here := make(chan error)
		go func() { here <- p.adoptIn(fmt.Sprintf("/proc/self/task/%d/ns/net", tid)) }()
		r.err = <-here
		r.adopted = p.Adopted() - before
		for _, c := range list {
			c.Close()
		}
	}()
	if r := <-done; r.err != nil || r.adopted != 3 {
		t.Errorf("%d of 3 connections: %v", r.adopted, r.err)
	}
}

// loopback brings the interface of a new network namespace up.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}
