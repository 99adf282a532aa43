package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"plimsoll/internal/agent"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/report"
	"plimsoll/internal/responsetime"
)

// requestTimes measures beside the agent how long the requests of its containers take (run --requests).
type requestTimes struct {
	found agent.Discoverer
	tree  *cgroup.Tree
	log   *slog.Logger

	mu      sync.Mutex
	meter   *requestMeter
	problem string
	past    map[uint64][]pastRequests // readings of the last minute by inode, oldest first
}

type pastRequests struct {
	at     time.Time
	counts responsetime.Counts
}

const (
	requestsEvery = 15 * time.Second // a reading, of 7 KB a container
	requestsSpan  = time.Minute      // that a status tells of
)

// openRequests is nil where requests are not measured.
func (f *runFlags) openRequests(tree *cgroup.Tree, found agent.Discoverer, log *slog.Logger) *requestTimes {
	if !f.requests {
		return nil
	}
	return &requestTimes{found: found, tree: tree, log: log, problem: "the programs are being loaded", past: map[uint64][]pastRequests{}}
}

// groups are the paths of the containers that are there.
func (r *requestTimes) groups() (list []string, err error) {
	pods, err := r.found.Pods()
	for _, p := range pods {
		for _, c := range p.Containers {
			list = append(list, c.Path)
		}
	}
	return list, err
}

// open loads the programs, which the agent need not wait for.
func (r *requestTimes) open() bool {
	groups, _ := r.groups() // what is found later is followed then
	m, err := newRequestMeter(r.tree, groups)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.problem = withHint(err, requestsHint(err)).Error()
		r.log.Warn("how long requests take is not measured", "error", err, "hint", requestsHint(err))
		return false
	}
	r.meter, r.problem = m, ""
	for _, note := range m.notes() {
		r.log.Warn("something about requests is not measured", "what", note)
	}
	return true
}

// run follows the containers until the context ends.
func (r *requestTimes) run(ctx context.Context) error {
	if r == nil || !r.open() {
		return nil
	}
	defer r.meter.close()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var read time.Time
	for {
		if groups, err := r.groups(); err == nil { // else the next time
			r.mu.Lock()
			r.meter.follow(groups)
			r.mu.Unlock()
		}
		if time.Since(read) >= requestsEvery {
			read = time.Now()
			if err := r.read(read); err != nil {
				r.log.Error("how long requests take is not measured any more", "error", err)
				r.mu.Lock()
				r.problem = err.Error()
				r.mu.Unlock()
				return nil // the agent does without
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// read keeps a reading of each container, and drops those that are older than a minute.
func (r *requestTimes) read(now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	past := map[uint64][]pastRequests{}
	for _, a := range r.meter.groups {
		c, err := r.meter.probe.Read(a.inode)
		if err != nil {
			return err
		}
		list := append(r.past[a.inode], pastRequests{now, c})
		for len(list) > 1 && now.Sub(list[1].at) >= requestsSpan {
			list = list[1:]
		}
		past[a.inode] = list
	}
	r.past = past
	return nil
}

// report lays what was measured over a status.
func (r *requestTimes) report(s *report.Status) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Requests = &report.RequestTimes{Problem: r.problem}
	if r.problem != "" {
		return
	}
	s.Requests.Notes = r.meter.notes()
	for i := range s.Containers {
		a := r.meter.groups[s.Containers[i].Cgroup]
		if a == nil {
			continue
		}
		list := r.past[a.inode]
		if len(list) == 0 {
			continue // the first reading comes
		}
		last, all := list[len(list)-1], list[len(list)-1].counts.Since(a.begun)
		lately := responsetime.Judge(last.counts.Since(list[0].counts), last.at.Sub(list[0].at))
		t := &report.RequestTotals{Answered: int64(all.Told()), Lately: &lately}
		if lately.Withheld == "" {
			t.Response, t.Throttled = all.Total, all.Kept
		}
		s.Containers[i].Totals.Requests = t
	}
}
