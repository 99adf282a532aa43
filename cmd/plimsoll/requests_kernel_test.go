package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/experiment"
	"plimsoll/internal/probe/requests"
	"plimsoll/internal/report"
)

// TestRunRequests: the agent measures how long a service takes to answer, in how much of that it was throttled, and so
// does diagnose.
func TestRunRequests(t *testing.T) {
	if !cgrouptest.AtLeast(cgrouptest.Release(t), "6.12") {
		cgrouptest.Elsewhere(t, "the cells of test/vm from 6.12 on", "%v", requests.ErrKernel)
	}
	s := newShipped(t)
	web := cgrouptest.New(t)
	web.Limit(5 * ms)
	service := &experiment.Service{Binary: s.binary}
	t.Cleanup(func() { _ = service.Stop() }) // killed with the test otherwise
	if err := service.Start(func(pid int) error { web.Move(pid); return nil }); err != nil {
		t.Fatal(err)
	}
	s.write(fmt.Sprintf("overrides:\n- {cgroup: %q, policy: none}\n", web.Path))
	s.flags = append(s.flags, "--requests", "--record-dir", "") // nobody else needs its throttles
	agent := s.start()
	size := 128 << 10 // each answer takes several quotas
	if emulated() {
		size /= 16 // in the 4 s of diagnose there is to be an answer
	}
	get := func() error {
		res, err := http.Get(service.URL(size))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	eventually(t, patience(30*time.Second), func() string {
		if err := get(); err != nil {
			return err.Error()
		}
		status := s.status()
		if status.Requests == nil || status.Requests.Problem != "" {
			return fmt.Sprintf("requests: %+v", status.Requests)
		}
		for _, c := range status.Containers {
			if r := c.Requests; c.Cgroup == web.Path && r != nil && r.Answered > 0 && r.Throttled > 0 &&
				r.Time > r.Throttled && r.Response.P99 > 0 {
				return ""
			}
		}
		return fmt.Sprintf("%+v", status.Containers)
	})
	asked := make(chan error)
	begun := time.Now()
	go func() {
		var err error
		for err == nil && time.Since(begun) < patience(6*time.Second) {
			err = get()
		}
		asked <- err
	}()
	out, err := s.run("diagnose", "--for", "4s", "--requests", "--json", web.Path)
	err = errors.Join(err, <-asked)
	var d report.Diagnosis
	if err != nil || json.Unmarshal([]byte(out), &d) != nil || len(d.Containers) != 1 {
		t.Fatal(out, err)
	}
	if r := d.Containers[0].Requests; r == nil || r.Answered == 0 || r.Throttled == 0 {
		t.Errorf("diagnosis: %+v", r)
	}
	agent.stop(syscall.SIGTERM)
}
