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

// Site is a web server of the experiment's own, with one text: its own configuration, port, document and log; the system's
// is not touched.
type Site struct {
	Name          string // of the server
	Size          int    // of the text
	Configuration func(dir, address string) string
	Command       func(dir string) []string // its program, which reads SiteConfig in dir
	dir, url      string
	child         *experiment.Child
}

// The files of a site. Folder www has the text.
const (
	SiteConfig = "server.conf"
	SiteLog    = "error.log"
)

// Start starts the server in its group: it waits for its start (Launch) until it is there.
func (s *Site) Start(enter func(pid int) error) (err error) {
	if s.dir, err = experiment.TempDir(strings.ToLower(s.Name)); err != nil {
		return err
	}
	address, err := FreeAddress()
	if err == nil {
		err = s.prepare(address)
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	s.url = "http://" + address + "/file.txt"
	line := s.Command(s.dir)
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
func (s *Site) prepare(address string) error {
	www := filepath.Join(s.dir, "www")
	if err := errors.Join(os.Chmod(s.dir, 0o755), os.Mkdir(www, 0o755)); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(www, "file.txt"), load.Text(1, s.Size), 0o644),
		os.WriteFile(filepath.Join(s.dir, SiteConfig), []byte(s.Configuration(s.dir, address)), 0o644))
}

func (s *Site) answers() error {
	res, err := http.Head(s.url)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// URL is the text, whatever the size.
func (s *Site) URL(int) string { return s.url }

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
