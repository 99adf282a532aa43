package frame

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/experiment"
)

// Memcached looks for memcached, to hold a value of 100 bytes under each of some keys.
func Memcached(threads, keys int) (*Site, error) {
	binary, err := experiment.Program("memcached")
	return &Site{Name: "memcached", Ready: func(address string) error { return fill(address, keys) },
		Command: func(_, address string) []string {
			host, port, _ := net.SplitHostPort(address) // FreeAddress made it
			// -u root: a change of user would undo that it dies with the experiment (prctl(2), PR_SET_PDEATHSIG).
			return []string{binary, "-l", host, "-p", port, "-U", "0", "-t", strconv.Itoa(threads), "-m", "64", "-u", "root"}
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
		if _, err := fmt.Fprintf(c, "set %s 0 0 %d\r\n%s\r\n", MemcachedKey(i), len(memcachedValue), memcachedValue); err != nil {
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
