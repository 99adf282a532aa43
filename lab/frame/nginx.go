package frame

import (
	"fmt"
	"path/filepath"
	"strings"

	"plimsoll/internal/experiment"
)

// Nginx looks for nginx, to serve a document of a size. It keeps connections open, and has a worker for each CPU. Each worker
// listens itself: the kernel spreads the connections. Listen is added to the address ("ssl"), and lines to the configuration
// of the server.
func Nginx(size int, listen string, lines ...string) (*Site, error) {
	binary, err := experiment.Program("nginx")
	if err != nil {
		return nil, err
	}
	return &Site{Name: "nginx", Size: size,
		Configuration: func(dir, address string) string { return nginxConfiguration(dir, address+listen, lines) },
		Command: func(dir, _ string) []string {
			return []string{binary, "-p", dir, "-c", filepath.Join(dir, SiteConfig), "-e", filepath.Join(dir, SiteLog)}
		}}, nil
}

// Gzip are the lines with which nginx compresses each answer anew.
func Gzip() []string { return []string{"gzip on;", "gzip_types text/plain;", "gzip_comp_level 6;"} }

func nginxConfiguration(dir, listen string, lines []string) string {
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
	line("  keepalive_requests 1000000000;")
	line("  keepalive_timeout 600s;")
	line("  server { listen %s reuseport; root %s; %s }", listen, filepath.Join(dir, "www"), strings.Join(lines, " "))
	line("}")
	return b.String()
}
