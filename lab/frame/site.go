package frame

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
)

const sitePatience = 10 * time.Second // it answers, and it ends

// Site is a server of the experiment's own: its own configuration, port, document and log; the system's is not touched.
// A web server has one text.
type Site struct {
	Name string // of the server
	Size int    // of the text
	// with DIR and ADDRESS in the place of its own; "": it needs no files
	Configuration string
	Command       func(dir, address string) []string // its program, which reads SiteConfig in dir
	Ready         func(address string) error         // nil: it is once it answers a web request
	dir, address  string
	child         *experiment.Child
}

// The files of a site. Folder www has the text.
const (
	SiteConfig = "server.conf"
	SiteLog    = "error.log"
)

// Start starts the server in its group: it waits for its start (Launch) until it is there.
func (s *Site) Start(enter func(pid int) error) (err error) {
	if s.address, err = FreeAddress(); err == nil && s.Configuration != "" {
		err = s.prepare()
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	line := s.Command(s.dir, s.address)
	if s.child, err = experiment.Launch(experiment.Gated(line[0], line[1:]...), enter); err != nil {
		return err
	}
	if err := s.child.Await(context.Background(), sitePatience, s.answers); err != nil {
		log, _ := os.ReadFile(filepath.Join(s.dir, SiteLog))
		return fmt.Errorf("%s does not answer: %w\n%s", s.Name, err, log)
	}
	return nil
}

// prepare writes the configuration and the text, for the server's user to read.
func (s *Site) prepare() (err error) {
	if s.dir, err = experiment.TempDir(strings.ToLower(s.Name)); err != nil {
		return err
	}
	www, text := filepath.Join(s.dir, "www"), strings.NewReplacer("DIR", s.dir, "ADDRESS",
		s.address).Replace(s.Configuration)
	if err := errors.Join(os.Chmod(s.dir, 0o755), os.Mkdir(www, 0o755)); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(www, "file.txt"), load.Text(1, s.Size), 0o644),
		os.WriteFile(filepath.Join(s.dir, SiteConfig), []byte(text), 0o644))
}

func (s *Site) answers() error {
	if s.Ready != nil {
		return s.Ready(s.address)
	}
	res, err := http.Head(s.URL(0))
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// URL is the text, whatever the size.
func (s *Site) URL(int) string { return "http://" + s.address + "/file.txt" }

// Address is where it listens.
func (s *Site) Address() string { return s.address }

// Stop ends the server and removes its files.
func (s *Site) Stop() error { return errors.Join(s.child.Stop(sitePatience), os.RemoveAll(s.dir)) }

// FreeAddress is an unused address of the loopback.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

//go:embed apache.conf
var apacheConfiguration string

//go:embed nginx.conf
var nginxConfiguration string

const (
	apacheFile    = 1 << 20 // as /static/file.1m.test in the published experiment
	apacheBinary  = "/usr/sbin/apache2"
	apacheModules = "/usr/lib/apache2/modules"
	threadEnd     = "/lib/x86_64-linux-gnu/libgcc_s.so.1" // the C library loads it where a thread ends itself
)

// ApacheFiles are the paths of Debian's Apache and of what it loads while it runs.
func ApacheFiles() []string {
	files := []string{apacheBinary, threadEnd}
	for _, word := range strings.Fields(apacheConfiguration) {
		if name, is := strings.CutPrefix(word, "MODULES"); is {
			files = append(files, apacheModules+name)
		}
	}
	return files
}

// Apache looks for Debian's Apache.
func Apache() (*Site, error) {
	for _, name := range ApacheFiles() {
		if _, err := os.Stat(name); err != nil {
			return nil, experiment.WithHint(fmt.Errorf("Debian's Apache is not installed: %s is not there", name),
				"run `make setup`, which installs apache2")
		}
	}
	return &Site{Name: "Apache", Size: apacheFile,
		Configuration: strings.ReplaceAll(apacheConfiguration, "MODULES", apacheModules),
		Command: func(dir, _ string) []string {
			return []string{apacheBinary, "-f", filepath.Join(dir, SiteConfig), "-D", "FOREGROUND"}
		}}, nil
}

// Nginx looks for nginx, to serve a document of a size. Listen is added to the address ("ssl"), and lines to the
// configuration of the server.
func Nginx(size int, listen string, lines ...string) (*Site, error) {
	binary, err := experiment.Program("nginx")
	if err != nil {
		return nil, err
	}
	return &Site{Name: "nginx", Size: size,
		Configuration: strings.NewReplacer("LISTEN", listen, "LINES",
			strings.Join(lines, " ")).Replace(nginxConfiguration),
		Command: func(dir, _ string) []string {
			return []string{binary, "-p", dir, "-c", filepath.Join(dir, SiteConfig), "-e", filepath.Join(dir, SiteLog)}
		}}, nil
}

// Gzip are the lines with which nginx compresses each answer anew.
func Gzip() []string { return []string{"gzip on;", "gzip_types text/plain;", "gzip_comp_level 6;"} }

// Memcached looks for memcached, to hold a value of 100 bytes under each of some keys.
func Memcached(threads, keys int) (*Site, error) {
	binary, err := experiment.Program("memcached")
	return &Site{Name: "memcached", Ready: func(address string) error { return fill(address, keys) },
		Command: func(_, address string) []string {
			host, port, _ := net.SplitHostPort(address) // FreeAddress made it
			// -u root: a change of user would undo that it dies with the experiment (prctl(2), PR_SET_PDEATHSIG).
			return []string{binary, "-l", host, "-p", port, "-U", "0", "-t", strconv.Itoa(threads), "-m", "64", "-u",
				"root"}
		}}, err
}

// fill stores the values.
func fill(address string, keys int) error {
	c, err := net.DialTimeout("tcp", address, sitePatience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(sitePatience)); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	for i := range keys {
		if _, err := fmt.Fprintf(c, "set %s 0 0 %d\r\n%s\r\n", MemcachedKey(i), len(memcachedValue),
			memcachedValue); err != nil {
			return err
		}
		if line, err := in.ReadString('\n'); err != nil || line != "STORED\r\n" {
			return fmt.Errorf("set %s: %q: %w", MemcachedKey(i), line, err)
		}
	}
	return nil
}

// The text protocol (memcached, doc/protocol.txt).

var memcachedValue = strings.Repeat("v", 100)

// MemcachedKey is the i-th key.
func MemcachedKey(i int) string { return fmt.Sprintf("key%03d", i) }

// MemcachedGet asks for the i-th value.
func MemcachedGet(i int) []byte { return []byte("get " + MemcachedKey(i) + "\r\n") }

// MemcachedAnswer is the answer to that.
func MemcachedAnswer(i int) []byte {
	return fmt.Appendf(nil, "VALUE %s 0 %d\r\n%s\r\nEND\r\n", MemcachedKey(i), len(memcachedValue), memcachedValue)
}
