package experiment

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// FreeAddress is one of the loopback that nobody listens on.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// AwaitHTTP waits until a server answers. Where it ends instead, or is not there in time, that is the error.
func (c *Child) AwaitHTTP(url string, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		res, err := http.Head(url)
		if err == nil {
			return res.Body.Close()
		}
		if ended := c.Ended(); ended != nil || time.Now().After(deadline) {
			return fmt.Errorf("no answer from %s: %w", url, errors.Join(err, ended))
		}
	}
}
