package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// read has all readers read once.
func (r *result) read(ctx context.Context, url string) error {
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	for range r.Readers {
		all.Go(func() {
			begin := time.Now()
			code, size, err := get(ctx, url)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			r.Answers[code]++
			r.Bytes = max(r.Bytes, size)
			r.Slowest = max(r.Slowest, time.Since(begin))
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// get reads as a program does that knows nothing of compression.
func get(ctx context.Context, url string) (code string, size int64, err error) {
	plain := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	client := http.Client{Transport: plain, Timeout: time.Minute}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	res, err := client.Do(q)
	if err != nil {
		return "", 0, err
	}
	defer res.Body.Close()
	size, err = io.Copy(io.Discard, res.Body)
	return res.Status, size, err
}
