package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Client sends requests over connections that stay open.
type Client struct {
	http http.Client
}

// NewClient makes a client that keeps up to open connections.
func NewClient(open int) *Client {
	return &Client{http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: open,
		DisableCompression:  true, // what comes is counted, not read
	}}}
}

// Get asks for url once and reads the answer to its end.
func (c *Client) Get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept-Encoding", "gzip")
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Encoding") != "gzip" {
		return fmt.Errorf("GET %s: %s, Content-Encoding %q", url, res.Status, res.Header.Get("Content-Encoding"))
	}
	return nil
}

// Close closes the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }
