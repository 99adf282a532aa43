package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"plimsoll/internal/experiment"
	"plimsoll/lab/frame"
)

const (
	fileSize  = 60 << 10 // about a millisecond of compression
	smallFile = 6 << 10
)

// newNginx looks for nginx, to serve a document of a size.
func newNginx(size int) (*frame.Site, error) {
	binary, err := experiment.Program("nginx")
	if err != nil {
		return nil, err
	}
	return &frame.Site{Name: "nginx", Size: size, Configuration: configuration, Command: func(dir string) []string {
		return []string{binary, "-p", dir, "-c", filepath.Join(dir, frame.SiteConfig), "-e", filepath.Join(dir, frame.SiteLog)}
	}}, nil
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
