package frame

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/experiment"
)

const memcachedPatience = 10 * time.Second

// Memcached is one of the experiment's own, with a value of 100 bytes under each of some keys.
type Memcached struct {
	threads, keys   int
	binary, address string
	child           *experiment.Child
}

// NewMemcached looks for memcached.
func NewMemcached(threads, keys int) (*Memcached, error) {
	binary, err := experiment.Program("memcached")
	return &Memcached{threads: threads, keys: keys, binary: binary}, err
}

// Start starts it in its group, and waits until it has the values.
func (m *Memcached) Start(enter func(pid int) error) (err error) {
	if m.address, err = FreeAddress(); err != nil {
		return fmt.Errorf("start memcached: %w", err)
	}
	host, port, err := net.SplitHostPort(m.address)
	if err != nil {
		return fmt.Errorf("start memcached: %w", err)
	}
	// -u root: a change of user would undo that it dies with the experiment (prctl(2), PR_SET_PDEATHSIG).
	cmd := experiment.Gated(m.binary, "-l", host, "-p", port, "-U", "0", "-t", strconv.Itoa(m.threads), "-m", "64", "-u", "root")
	if m.child, err = experiment.Launch(cmd, enter); err != nil {
		return err
	}
	if err := m.child.Await(context.Background(), memcachedPatience, m.fill); err != nil {
		return fmt.Errorf("memcached does not answer: %w", err)
	}
	return nil
}

func (m *Memcached) fill() error {
	c, err := net.DialTimeout("tcp", m.address, memcachedPatience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(memcachedPatience)); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	for i := range m.keys {
		if _, err := fmt.Fprintf(c, "set %s 0 0 %d\r\n%s\r\n", MemcachedKey(i), len(memcachedValue), memcachedValue); err != nil {
			return err
		}
		if line, err := in.ReadString('\n'); err != nil || line != "STORED\r\n" {
			return fmt.Errorf("set %s: %q: %w", MemcachedKey(i), line, err)
		}
	}
	return nil
}

// Address is where it listens.
func (m *Memcached) Address() string { return m.address }

// URL is its address: experiment.Server asks for one.
func (m *Memcached) URL(int) string { return m.address }

// Stop ends it.
func (m *Memcached) Stop() error { return m.child.Stop(memcachedPatience) }

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
