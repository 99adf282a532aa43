package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
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

// freeAddress is one of this machine on which nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// process is one that is measured from outside.
type process int

// forgetPeak has the kernel count the peak anew (proc(5), clear_refs).
func (p process) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p), []byte("5"), 0)
}

// memory reads a line of /proc/PID/status, in bytes.
func (p process) memory(key string) (int64, error) {
	name := fmt.Sprintf("/proc/%d/status", p)
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(string(data), key)
	words := strings.Fields(after)
	if !found || len(words) == 0 {
		return 0, fmt.Errorf("%s: no %s", name, key)
	}
	kib, err := strconv.ParseInt(words[0], 10, 64)
	return kib << 10, err
}
