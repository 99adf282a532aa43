package report

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"plimsoll/internal/cpu"
)

func registry(t *testing.T, snapshot func() (Status, error)) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(NewCollector(snapshot, Full)); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMetricsAreLinted(t *testing.T) {
	problems, err := testutil.GatherAndLint(registry(t, func() (Status, error) { return sample(), nil }))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestMetrics(t *testing.T) {
	recorded(t, "metrics.txt", func(b *bytes.Buffer) error {
		families, err := registry(t, func() (Status, error) { return sample(), nil }).Gather()
		if err != nil {
			return err
		}
		for _, f := range families {
			if _, err := expfmt.MetricFamilyToText(b, f); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestMetricsOfAVanishedContainerVanish(t *testing.T) {
	s := sample()
	r := registry(t, func() (Status, error) { return s, nil })
	const name = "plimsoll_container_periods_total"
	before, err := testutil.GatherAndCount(r, name)
	if err != nil || before != len(s.Containers) {
		t.Fatalf("got %d series, %v; want %d", before, err, len(s.Containers))
	}
	s.Containers = s.Containers[1:]
	if after, err := testutil.GatherAndCount(r, name); err != nil || after != before-1 {
		t.Errorf("got %d series, %v; want %d", after, err, before-1)
	}
}

// A scrape must not fail as a whole for one odd group: a path that is listed twice while a group is replaced, or a
// name that is not UTF-8.
func TestMetricsSurviveOddContainers(t *testing.T) {
	s := sample()
	s.Containers = append(s.Containers, s.Containers[0],
		Container{Cgroup: "/lab/\xff", Name: "\xff", Limit: math.MaxInt64})
	r := registry(t, func() (Status, error) { return s, nil })
	n, err := testutil.GatherAndCount(r, "plimsoll_container_limit_seconds")
	if want := len(sample().Containers) + 1; err != nil || n != want {
		t.Errorf("got %d series, %v; want %d", n, err, want)
	}
}

func TestMetricsOfASilentAgentAreAnError(t *testing.T) {
	_, err := registry(t, func() (Status, error) { return Status{}, errors.New("no answer") }).Gather()
	if err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("got %v, want the snapshot's error", err)
	}
}

// TestBasicMetricsAreFew: each container has the series of the bound and no more, whatever is measured of it. A pod has
// its own only where its limit is not the sum of its containers'.
func TestBasicMetricsAreFew(t *testing.T) {
	s := sample()
	of := func(level, name, pod string, limit time.Duration) Container {
		c := s.Containers[0]
		c.Cgroup, c.Level, c.Name, c.Pod, c.Limit = "/kubepods/"+name, level, name, pod, limit
		c.Totals.Waited = &Waited{Waits: []Wait{{}, {}, {}}}
		return c
	}
	const ms = time.Millisecond
	s.Containers = []Container{
		of("pod", "default/web", "", 30*ms), of("container", "default/web/a", "default/web", 10*ms),
		of("container", "default/web/b", "default/web", 20*ms),
		of("pod", "default/own", "", 30*ms), of("container", "default/own/a", "default/own", cpu.Unlimited),
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(NewCollector(func() (Status, error) { return s, nil }, Basic))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "cgroup" && strings.HasPrefix(l.GetValue(), "/kubepods/") {
					series[l.GetValue()]++
				}
			}
		}
	}
	want := map[string]int{"/kubepods/default/web/a": 12, "/kubepods/default/web/b": 12, "/kubepods/default/own": 12,
		"/kubepods/default/own/a": 12}
	if diff := cmp.Diff(want, series); diff != "" {
		t.Error(diff)
	}
}
