package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const connections = 4

// load sends requests for a while, and returns how long each took. A connection whose request is not answered sends no
// other one: the kernel's figures are of the same requests.
func (s subject) load(ctx context.Context, span time.Duration, seed uint64) (all []time.Duration, err error) {
	times := make([][]time.Duration, connections)
	var group errgroup.Group
	end := time.Now().Add(span)
	for i := range connections {
		group.Go(func() (err error) {
			times[i], err = s.converse(ctx, end, rand.New(rand.NewPCG(seed, uint64(i))))
			return err
		})
	}
	err = group.Wait()
	for _, list := range times {
		all = append(all, list...)
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no request was answered in %v", span)
	}
	return all, err
}

// converse sends requests on one connection at random times.
func (s subject) converse(ctx context.Context, end time.Time, rng *rand.Rand) (times []time.Duration, err error) {
	c, err := net.Dial("tcp", s.address())
	if err != nil {
		return nil, err
	}
	if s.tls {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) // it is this process that made the certificate
	}
	defer c.Close()
	in := bufio.NewReaderSize(c, 64<<10)
	for ctx.Err() == nil && time.Now().Before(end) {
		if s.rate > 0 {
			time.Sleep(time.Duration(rng.ExpFloat64() / s.rate * float64(time.Second)))
		}
		began := time.Now()
		if _, err := io.WriteString(c, s.ask); err != nil {
			return nil, err
		}
		if err := s.answer(in); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
	}
	return times, ctx.Err()
}

// answer reads one to its end.
func (s subject) answer(in *bufio.Reader) error {
	if s.ends != "" {
		for {
			line, err := in.ReadString('\n')
			if err != nil || strings.HasSuffix(line, s.ends) {
				return err
			}
		}
	}
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the server says %s", res.Status)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err
}
