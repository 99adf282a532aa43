package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

func TestReserve(t *testing.T) {
	if got := mustParse(t, "").Reserve(); !cmp.Equal(got, strategy.DefaultReserve()) ||
		got.Policy != strategy.ReserveNone {
		t.Errorf("nothing is configured: %+v", got)
	}
	f := mustParse(t, `
reserve: {policy: auto, minSharedCPUs: 1500m, reservedCPUs: "0-1,8", shield: true}
overrides:
  - {cgroup: "/lab/*", exclusive: true, request: 2}
  - {cgroup: "/lab/b", exclusive: strict}
  - {cgroup: "/lab/c", exclusive: false, class: LSE}
  - {cgroup: "/lse", class: LSE}
`)
	want := strategy.Reserve{Policy: strategy.ReserveAuto, MinShared: 1.5, CPUs: cpu.Set{0, 1, 8}, Shield: true}
	if diff := cmp.Diff(want, f.Reserve()); diff != "" {
		t.Error(diff)
	}
	for group, want := range map[string]struct {
		exclusive workload.Exclusive
		reserves  bool
	}{
		"/lab/a": {workload.ExclusiveYes, true},
		"/lab/b": {workload.ExclusiveStrict, true},
		"/lab/c": {workload.ExclusiveNo, false},
		"/lse":   {workload.ExclusiveByClass, true},
		"/other": {workload.ExclusiveByClass, false},
	} {
		e := f.Resolve(group)
		asks, byNode := workload.Container{Class: e.Class, Exclusive: e.Exclusive}.Asks(f.Reserve())
		if e.Exclusive != want.exclusive || (asks != workload.ExclusiveNo) != want.reserves || byNode {
			t.Errorf("%s: %q, asks %q", group, e.Exclusive, asks)
		}
	}
	for text, want := range map[string][2]bool{"": {false, false}, "true": {true, false}, "strict": {true, true},
		"false": {false, false}} {
		if text != "" {
			text = "exclusive: " + text
		}
		r := mustParse(t, "reserve: {"+text+"}").Reserve()
		if got := [2]bool{r.All, r.Strict}; got != want {
			t.Errorf("%q: all, strict %v, want %v", text, got, want)
		}
	}
	if got := mustParse(t, "reserve: {reservedCPUs: 3}").Reserve().CPUs; !cmp.Equal(got, cpu.Set{3}) {
		t.Errorf("a single CPU is read as %v", got)
	}
}

func TestReserveErrors(t *testing.T) {
	for text, want := range map[string]string{
		"reserve: {policy: on}": `c.yaml:1: reserve.policy: "on" is not one of none, cpuset, auto`,
		"reserve: {minSharedCPUs: 0.5}": "c.yaml:1: reserve.minSharedCPUs: leaves everybody else " +
			"less than a CPU (1 is the least)",
		"reserve: {minSharedCPUs: most}":  "is not an amount of CPU",
		"reserve: {reservedCPUs: 3-1}":    `"3-1" runs backwards`,
		"reserve: {reservedCPUs: [1, 2]}": "must be a list of CPUs",
		"reserve: {exclusive: all}":       `c.yaml:1: reserve.exclusive: "all" is not one of true, false, strict`,
		"reserve: {exclusive: 1}": "c.yaml:1: reserve.exclusive: must be true, false or " +
			"strict, not 1",
		"reserve: {cpus: 1}":                           "unknown field",
		"overrides: [{cgroup: /a, exclusive: strikt}]": `overrides[0].exclusive: "strikt" is not one of true, false, strict (did you mean strict?)`,
		"overrides: [{cgroup: /a, exclusive: 2}]":      "exclusive",
	} {
		_, err := Parse("c.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
