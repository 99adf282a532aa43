package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/lab/frame"
)

// statusReader reads the status over the control socket.
type statusReader struct{ plain }

const statusEvery = 100 * time.Millisecond

func (r *statusReader) begin(ctx context.Context, _ *bench, a *experiment.Agent) error {
	r.every(ctx, statusEvery, reader(a))
	return nil
}

// reader reads the status once. It does not decode it, which would take more of the machine than the agent does.
func reader(a *experiment.Agent) func(context.Context) error {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", a.Socket())
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	return func(ctx context.Context) error { return get(ctx, client, "http://agent/api/v1/status") }
}

// scrapers read the metrics over TCP.
type scrapers struct {
	plain
	address string
}

const (
	scraperCount = 8
	scrapeEvery  = time.Millisecond
)

func (r *scrapers) prepare(_ context.Context, _ *bench, s *experiment.Setup) (err error) {
	r.address, err = frame.FreeAddress()
	s.Flags = []string{"--listen", r.address}
	return err
}

func (r *scrapers) begin(ctx context.Context, _ *bench, _ *experiment.Agent) error {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	for range scraperCount {
		r.every(ctx, scrapeEvery, func(ctx context.Context) error {
			return get(ctx, client, "http://"+r.address+"/metrics")
		})
	}
	return nil
}

// patience is how long a reader waits. An agent that hangs is what the bench is to find, and no fault of the reader.
const patience = time.Second

// get reads an answer, whatever it says. A reader goes on after a refusal, and after a second without an answer.
func get(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("read %s: %w", url, err)
	}
	res, err := client.Do(q)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return nil
}
