package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/lab/experiment"
)

// subject is a server whose requests are timed.
type subject struct {
	name    string
	rate    float64 // requests a second and connection; 0: one after the other
	limit   float64 // CPUs, by which it is throttled; 0: never
	tls     bool
	ask     string // the request
	ends    string // the end of an answer; "": it is of HTTP
	address func() string
	experiment.Server
}

// subjects are all servers.
func subjects(plimsoll string) []subject {
	web := func(name string, rate, limit float64, s *experiment.Site) subject {
		return subject{name: name, rate: rate, limit: limit, Server: s, ask: request("/file.txt"), address: func() string { return host(s.URL(0)) }}
	}
	service := &experiment.Service{Binary: plimsoll}
	cache, busy := &memcached{}, &memcached{}
	list := []subject{
		web("Apache, gzip of 250 KB", 12, 0.3, apache()),
		web("nginx, 400 bytes", 300, 0.05, nginx("400 bytes", 400, false)),
		web("nginx, 1 MiB by sendfile", 60, 0.05, nginx("1 MiB", 1<<20, false)),
		web("nginx, 400 bytes, TLS", 200, 0.05, nginx("TLS", 400, true)),
		{name: "Go net/http, gzip of 100 KB", rate: 30, limit: 0.3, ask: request("/gzip?bytes=100000"), Server: service, address: func() string { return host(service.URL(1)) }},
		{name: "memcached, get", rate: 500, limit: 0.03, ask: "get key\r\n", ends: "END\r\n", Server: cache, address: func() string { return cache.at }},
		{name: "memcached without pauses", ask: "get key\r\n", ends: "END\r\n", Server: busy, address: func() string { return busy.at }},
	}
	list[3].tls = true
	return list
}

func request(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n"
}

func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "" // the server's own is good
	}
	return u.Host
}

// apache compresses each answer anew, by threads enough that no connection waits for one.
func apache() *experiment.Site {
	const modules = "/usr/lib/apache2/modules"
	return &experiment.Site{Name: "Apache", Size: 250_000, Command: func(dir string) []string {
		return []string{"/usr/sbin/apache2", "-f", filepath.Join(dir, experiment.SiteConfig), "-D", "FOREGROUND"}
	}, Configuration: func(dir, address string) string {
		lines := []string{"ServerRoot " + dir, "ServerName 127.0.0.1", "DefaultRuntimeDir " + dir, "PidFile " + filepath.Join(dir, "apache.pid"),
			"ErrorLog " + filepath.Join(dir, experiment.SiteLog), "Listen " + address}
		for _, m := range []string{"mpm_event", "authz_core", "mime", "filter", "deflate"} {
			lines = append(lines, fmt.Sprintf("LoadModule %s_module %s/mod_%s.so", m, modules, m))
		}
		return strings.Join(append(lines, "User www-data", "Group www-data", "StartServers 1", "ServerLimit 1", "ThreadsPerChild 32", "MaxRequestWorkers 32",
			"KeepAlive On", "MaxKeepAliveRequests 0", "KeepAliveTimeout 600", "TypesConfig /dev/null", "AddType text/plain .txt",
			"AddOutputFilterByType DEFLATE text/plain", "DocumentRoot "+filepath.Join(dir, "www"), "<Location />\nRequire all granted\n</Location>", ""), "\n")
	}}
}

// nginx has one worker, and sends files by sendfile where TLS does not keep it from that.
func nginx(name string, size int, tls bool) *experiment.Site {
	return &experiment.Site{Name: "nginx", Size: size, Command: func(dir string) []string {
		return []string{"/usr/sbin/nginx", "-p", dir, "-c", filepath.Join(dir, experiment.SiteConfig), "-e", filepath.Join(dir, experiment.SiteLog)}
	}, Configuration: func(dir, address string) string {
		listen := "listen " + address + ";"
		if tls {
			if err := certificate(dir); err != nil {
				return "# " + err.Error() // nginx will not start, and its log is shown
			}
			listen = fmt.Sprintf("listen %s ssl; ssl_certificate %s/cert.pem; ssl_certificate_key %s/key.pem;", address, dir, dir)
		}
		temp := ""
		for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			temp += fmt.Sprintf("%s_temp_path %s/%s; ", kind, dir, kind)
		}
		return fmt.Sprintf("daemon off; user www-data; worker_processes 1; pid %s/nginx.pid;\nevents { worker_connections 256; }\n"+
			"http { access_log off; sendfile on; %s keepalive_requests 1000000000; keepalive_timeout 600s; server { %s root %s/www; } }\n", dir, temp, listen, dir)
	}}
}

// certificate makes one that nobody has signed.
func certificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	signed, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	secret, err2 := x509.MarshalECPrivateKey(key)
	return errors.Join(err, err2,
		os.WriteFile(filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o644),
		os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600))
}

// memcached has one thread and one key.
type memcached struct {
	at    string
	child *experiment.Child
}

// Start implements experiment.Server.
func (m *memcached) Start(enter func(pid int) error) (err error) {
	if m.at, err = experiment.FreeAddress(); err != nil {
		return err
	}
	ip, port, err := net.SplitHostPort(m.at)
	if err != nil {
		return err
	}
	if m.child, err = experiment.Launch(experiment.Gated("/usr/bin/memcached", "-l", ip, "-p", port, "-U", "0", "-t", "1", "-u", "root"), enter); err != nil {
		return err
	}
	return m.child.Await(10*time.Second, func() error {
		c, err := net.Dial("tcp", m.at)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = fmt.Fprintf(c, "set key 0 0 5\r\nvalue\r\n")
		if err == nil {
			_, err = c.Read(make([]byte, 16))
		}
		return err
	})
}

// URL implements experiment.Server.
func (m *memcached) URL(int) string { return m.at }

// Stop implements experiment.Server.
func (m *memcached) Stop() error {
	if m.child == nil {
		return nil
	}
	return m.child.Stop(10 * time.Second)
}
