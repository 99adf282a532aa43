package report

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
)

func registry(t *testing.T, snapshot func() (Status, error)) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(NewCollector(snapshot)); err != nil {
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
	golden(t, "metrics.txt", func(b *bytes.Buffer) error {
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
	s.Containers = append(s.Containers, s.Containers[0], Container{Cgroup: "/lab/\xff", Name: "\xff", Limit: math.MaxInt64})
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
