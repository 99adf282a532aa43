package experiment

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Service is the demo's HTTP service, in a process of its own.
type Service struct {
	Binary string // plimsoll
	child  *Child
	base   string
}

// Start runs `plimsoll demo-service` and waits for its address.
func (s *Service) Start(enter func(pid int) error) error {
	cmd := exec.Command(s.Binary, "demo-service")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start the demo's service: %w", err)
	}
	if s.child, err = Launch(cmd, enter); err != nil {
		return err
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		<-s.child.done
		return fmt.Errorf("the demo's service reports no address: %w", s.child.Ended())
	}
	s.base = "http://" + strings.TrimSpace(address)
	return nil
}

// URL is the request for the compression of size bytes.
func (s *Service) URL(size int) string { return fmt.Sprintf("%s/gzip?bytes=%d", s.base, size) }

// Stop ends the service.
func (s *Service) Stop() error { return s.child.Stop(5 * time.Second) }

// TempDir makes a directory for files that an experiment needs, and removes those of experiments that were killed.
func TempDir(name string) (string, error) {
	prefix := "plimsoll-" + name + "-"
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*-*")) // the pattern is well-formed
	for _, dir := range old {
		maker, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if pid, err := strconv.Atoi(maker); err == nil && !alive(pid) {
			_ = os.RemoveAll(dir) // what cannot be removed does no harm
		}
	}
	dir, err := os.MkdirTemp("", prefix+strconv.Itoa(os.Getpid())+"-*")
	if err != nil {
		return "", fmt.Errorf("make a directory for %s: %w", name, err)
	}
	return dir, nil
}
