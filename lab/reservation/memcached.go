package main

import (
	"fmt"
	"net"
	"strings"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/lab/frame"
)

const (
	serverPatience = 10 * time.Second
	valueSize      = 100
)

// memcached is one of its own, with one thread: it can use the one CPU that the target has reserved.
type memcached struct {
	binary  string
	address string
	child   *experiment.Child
}

func (m *memcached) start(enter func(pid int) error) (err error) {
	if m.address, err = frame.FreeAddress(); err != nil {
		return fmt.Errorf("start memcached: %w", err)
	}
	host, port, err := net.SplitHostPort(m.address)
	if err != nil {
		return fmt.Errorf("start memcached: %w", err)
	}
	cmd := experiment.Gated(m.binary, "-l", host, "-p", port, "-U", "0", "-t", "1", "-m", "64", "-u", "root") // a change of user would undo that it dies with the experiment (prctl(2), PR_SET_PDEATHSIG)
	if m.child, err = experiment.Launch(cmd, enter); err != nil {
		return err
	}
	if err := m.child.Await(serverPatience, m.fill); err != nil {
		return fmt.Errorf("memcached does not answer: %w", err)
	}
	return nil
}

// fill stores a value under the key of each connection.
func (m *memcached) fill() error {
	c, err := net.DialTimeout("tcp", m.address, serverPatience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(serverPatience)); err != nil {
		return err
	}
	for i := range connections {
		if _, err := fmt.Fprintf(c, "set %s 0 0 %d\r\n%s\r\n", key(i), valueSize, value()); err != nil {
			return err
		}
		answer := make([]byte, len("STORED\r\n"))
		if _, err := c.Read(answer); err != nil || string(answer) != "STORED\r\n" {
			return fmt.Errorf("set %s: %q: %w", key(i), answer, err)
		}
	}
	return nil
}

func (m *memcached) stop() error {
	if m.child == nil {
		return nil
	}
	return m.child.Stop(serverPatience)
}

// The text protocol (memcached, doc/protocol.txt).

func key(connection int) string { return fmt.Sprintf("key%03d", connection) }

func value() string { return strings.Repeat("v", valueSize) }

func question(connection int) []byte { return []byte("get " + key(connection) + "\r\n") }

func answer(connection int) []byte {
	return fmt.Appendf(nil, "VALUE %s 0 %d\r\n%s\r\nEND\r\n", key(connection), valueSize, value())
}
