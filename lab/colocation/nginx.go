package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/internal/load"
	"plimsoll/lab/experiment"
)

const (
	fileSize  = 60 << 10 // about a millisecond of compression
	smallFile = 6 << 10
	patience  = 10 * time.Second
)

// nginx is one of its own: its own configuration, port, document and log; the system's is not touched.
type nginx struct {
	binary string
	size   int // of the document
	dir    string
	url    string
	child  *experiment.Child
}

// start starts nginx behind a gate, so that all its processes are born in the group.
func (n *nginx) start(enter func(pid int) error) (err error) {
	if n.dir, err = experiment.TempDir("nginx"); err != nil {
		return err
	}
	address, err := experiment.FreeAddress()
	if err != nil {
		return fmt.Errorf("start nginx: %w", err)
	}
	if err := n.prepare(address); err != nil {
		return fmt.Errorf("start nginx: %w", err)
	}
	n.url = "http://" + address + "/file.txt"
	cmd := experiment.Gated(n.binary, "-p", n.dir, "-c", n.file("nginx.conf"), "-e", n.file("error.log"))
	if n.child, err = experiment.Launch(cmd, enter); err != nil {
		return err
	}
	if err := n.child.AwaitHTTP(n.url, patience); err != nil {
		log, _ := os.ReadFile(n.file("error.log"))
		return fmt.Errorf("nginx does not answer: %w\n%s", err, log)
	}
	return nil
}

func (n *nginx) file(name string) string { return filepath.Join(n.dir, name) }

// prepare writes the configuration and the document, for nginx's workers to read.
func (n *nginx) prepare(address string) error {
	if err := os.Chmod(n.dir, 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(n.file("www"), 0o755); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(n.file("www/file.txt"), load.Text(1, n.size), 0o644),
		os.WriteFile(n.file("nginx.conf"), []byte(configuration(n.dir, address)), 0o644))
}

// configuration compresses each answer anew, keeps connections open, and has a worker for each CPU. Each worker listens
// itself: the kernel spreads the connections.
func configuration(dir, address string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("daemon off;")
	line("user www-data;")
	line("worker_processes auto;")
	line("pid %s;", filepath.Join(dir, "nginx.pid"))
	line("events { worker_connections 1024; }")
	line("http {")
	line("  access_log off;")
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		line("  %s_temp_path %s;", kind, filepath.Join(dir, kind))
	}
	line("  default_type text/plain;")
	line("  gzip on;")
	line("  gzip_types text/plain;")
	line("  gzip_comp_level 6;")
	line("  keepalive_requests 1000000000;")
	line("  keepalive_timeout 600s;")
	line("  server { listen %s reuseport; root %s; }", address, filepath.Join(dir, "www"))
	line("}")
	return b.String()
}

// stop ends nginx and removes its files.
func (n *nginx) stop() error {
	var err error
	if n.child != nil {
		err = n.child.Stop(patience)
	}
	return errors.Join(err, os.RemoveAll(n.dir))
}
