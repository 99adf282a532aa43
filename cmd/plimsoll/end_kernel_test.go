package main

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// TestRunEndsInOrder: each signal that ends the agent makes it restore everything. SIGHUP makes an agent without a
// terminal read its file again.
func TestRunEndsInOrder(t *testing.T) {
	s := newShipped(t)
	g, _ := newHog(t)
	before := files(t, g)
	s.configure("auto", g.Path)
	agent := s.start()
	changed(t, s, before, g)
	if err := agent.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if !agent.says("configuration loaded") {
		t.Error("the configuration was not read again")
	}
	changed(t, s, before, g)
	agent.stop(syscall.SIGINT)
	same(t, 0, before, g)
}

// TestRunOutlivesItsReader: an agent whose log has no reader any more goes on, because it has something to restore.
func TestRunOutlivesItsReader(t *testing.T) {
	s := newShipped(t)
	g, _ := newHog(t)
	before := files(t, g)
	s.configure("auto", g.Path)
	s.start().stop(syscall.SIGTERM) // no other process has the lock
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stderr = writer
	agent := s.launch()
	writer.Close()
	eventually(t, patience(5*time.Second), func() string {
		if _, err := s.run("report"); err != nil {
			return err.Error()
		}
		return ""
	})
	changed(t, s, before, g)
	reader.Close()
	s.configure("none", g.Path) // which is logged
	same(t, patience(2*time.Second), before, g)
	agent.stop(syscall.SIGTERM)
}
