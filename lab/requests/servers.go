package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
	"plimsoll/lab/frame"
)

// target is a server and its load.
type target struct {
	name     string
	server   experiment.Server
	rate     float64 // requests a second, over all connections
	tls      bool
	computes bool // most of its CPU time is its own, and not the kernel's
	several  bool // requests at a time on a connection
	large    bool // most of an answer is in the socket's buffer after the last send
	emulated bool // its CPUs are
	address  func() string
	ask      func(c io.Writer, in *bufio.Reader) error
}

// The sizes of answers.
const (
	small  = 400
	medium = 64 << 10
	large  = 1 << 20
)

func servers(b *frame.Bench) ([]target, error) {
	var list []target
	apache, err := frame.Apache()
	if err != nil {
		return nil, err
	}
	apache.Size = 128 << 10
	compressing := site("Apache gzip", 60, apache)
	compressing.computes = true
	list = append(list, compressing)
	secret, err := certificate(b.Dir("tls"))
	if err != nil {
		return nil, err
	}
	for _, one := range []struct {
		name   string
		rate   float64
		size   int
		listen string
		lines  []string
	}{
		{"nginx 400 B", 1500, small, "", nil},
		{"nginx sendfile 64 KiB", 600, medium, "", []string{"sendfile on;"}},
		{"nginx sendfile 1 MiB", 100, large, "", []string{"sendfile on;"}},
		{"nginx TLS 64 KiB", 300, medium, " ssl", secret},
	} {
		s, err := frame.Nginx(one.size, one.listen, one.lines...)
		if err != nil {
			return nil, err
		}
		t := site(one.name, one.rate, s)
		t.tls, t.large = one.listen != "", one.size == large
		list = append(list, t)
	}
	service := &goServer{}
	list = append(list, target{name: "Go net/http gzip", rate: 150, computes: true, server: service,
		address: service.at, ask: get("/gzip?bytes=65536")})
	m, err := frame.Memcached(2, 1)
	if err != nil {
		return nil, err
	}
	list = append(list, target{name: "memcached", rate: 1500, server: m, address: m.Address, ask: getValue})
	beside := &goServer{}
	return append(list, target{name: "Go HTTP/2", rate: 400, server: beside, several: true, address: beside.at}), nil
}

// onEmulatedCPUs has the load use about as much of the CPU as it does of a real one, where compression takes three to
// five times as long. A throttle keeps one request of one client: at half the rate that is more than one in a hundred.
func (t target) onEmulatedCPUs() target {
	t.emulated = true
	if t.rate /= 2; t.computes {
		t.rate /= 2
	}
	return t
}

func site(name string, rate float64, s *frame.Site) target {
	return target{name: name, rate: rate, server: s, ask: get("/file.txt"), address: s.Address}
}

// get asks for a document and reads it to the end.
func get(path string) func(io.Writer, *bufio.Reader) error {
	question := []byte("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n\r\n")
	return func(c io.Writer, in *bufio.Reader) error {
		if _, err := c.Write(question); err != nil {
			return err
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res.Body)
		if err == nil && res.StatusCode != http.StatusOK {
			err = errors.New(res.Status)
		}
		return err
	}
}

// certificate writes one of this run, and returns nginx's lines for it.
func certificate(dir string) ([]string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	one := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	text, err := x509.CreateCertificate(rand.Reader, one, one, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, file := range []struct{ name, kind, line string }{{"cert.pem", "CERTIFICATE", "ssl_certificate"},
		{"key.pem", "PRIVATE KEY", "ssl_certificate_key"}} {
		path := filepath.Join(dir, file.name)
		if err := os.WriteFile(path,
			pem.EncodeToMemory(&pem.Block{Type: file.kind,
				Bytes: map[bool][]byte{true: text, false: secret}[file.kind == "CERTIFICATE"]}), 0o600); err != nil {
			return nil, err
		}
		lines = append(lines, file.line+" "+path+";")
	}
	return lines, nil
}

// nap is how long the server of HTTP/2 waits before it answers.
const nap = 5 * time.Millisecond

// serve is a server of net/http, with HTTP/1.1 and, unencrypted, HTTP/2. It begins at a line on its input (Launch) and
// says its address.
func serve() error {
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", load.Handler(load.Text(1, large)))
	mux.HandleFunc("/nap", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(nap)
		_, _ = w.Write([]byte("slept\n")) // the client may have gone
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	s := &http.Server{Handler: mux, Protocols: &http.Protocols{}, ReadHeaderTimeout: time.Minute}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() {
		_, _ = io.Copy(io.Discard, in) // until the lab ends
		s.Close()
	}()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// goServer is serve in a process of its own.
type goServer struct {
	address string
	child   *experiment.Child
}

func (s *goServer) at() string { return s.address }

// Start implements experiment.Server.
func (s *goServer) Start(enter func(pid int) error) error {
	cmd := experiment.Again("-serve")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if s.child, err = experiment.Launch(cmd, enter); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	s.address = strings.TrimSpace(line)
	return err
}

// Stop implements experiment.Server.
func (s *goServer) Stop() error { return s.child.Stop(patience) }

// URL implements experiment.Server.
func (s *goServer) URL(int) string { return "http://" + s.address }

const patience = 10 * time.Second

// getValue asks memcached for its value.
func getValue(c io.Writer, in *bufio.Reader) error {
	if _, err := c.Write(frame.MemcachedGet(0)); err != nil {
		return err
	}
	want := frame.MemcachedAnswer(0)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(in, got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("get: %q", got)
	}
	return nil
}

// loadBeside asks by HTTP/2, so that requests share one connection.
func (t target) loadBeside(ctx context.Context, seed uint64, length time.Duration,
	begin func() error) ([]time.Duration, error) {
	transport := &http.Transport{Protocols: &http.Protocols{}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	if err := begin(); err != nil {
		return nil, err
	}
	var times collected
	out := load.Run(ctx, load.Poisson(seed, 0, t.rate, length), load.Bounds{Timeout: patience, Open: 512},
		func(ctx context.Context) error {
			begin := time.Now()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.address()+"/nap", nil)
			if err != nil {
				return err
			}
			res, err := client.Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			_, err = io.Copy(io.Discard, res.Body)
			times.add(time.Since(begin))
			return err
		})
	return times.sorted(), errors.Join(out.Cause, context.Cause(ctx))
}

var insecure = &tls.Config{InsecureSkipVerify: true} // a certificate of this run, on the loopback
