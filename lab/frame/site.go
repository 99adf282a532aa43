package frame

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
)

const sitePatience = 10 * time.Second // it answers, and it ends

// Site is a server of the experiment's own: its own configuration, port, document and log; the system's is not touched. A web
// server has one text.
type Site struct {
	Name          string                             // of the server
	Size          int                                // of the text
	Configuration func(dir, address string) string   // nil: it needs no files
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
	if s.address, err = FreeAddress(); err == nil && s.Configuration != nil {
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
	www := filepath.Join(s.dir, "www")
	if err := errors.Join(os.Chmod(s.dir, 0o755), os.Mkdir(www, 0o755)); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(www, "file.txt"), load.Text(1, s.Size), 0o644),
		os.WriteFile(filepath.Join(s.dir, SiteConfig), []byte(s.Configuration(s.dir, s.address)), 0o644))
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
