package view

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/report"
)

// TestBlame: the cause of the most time, and where no time was measured of the most periods;
// of two that are equal the later one.
func TestBlame(t *testing.T) {
	for _, c := range []struct {
		losses []loss
		want   Cause
	}{
		{nil, NoCause},
		{[]loss{{cause: Guard, lost: 2 * ms, throttled: 1}, {cause: OwnLimit, lost: ms, throttled: 9}}, Guard},
		{[]loss{{cause: Guard, lost: 2 * ms}, {cause: OwnLimit, lost: ms}, {cause: OwnLimit, lost: 2 * ms}}, OwnLimit},
		{[]loss{{cause: Guard, throttled: 2}, {cause: OwnLimit, throttled: 1}}, Guard},
		{[]loss{{cause: Guard, lost: ms}, {cause: OwnLimit, lost: ms}}, OwnLimit},
	} {
		if got := blame(c.losses); got != c.want {
			t.Errorf("%+v: %q, want %q", c.losses, got, c.want)
		}
	}
}

// TestSentenceSaysWhatWasDone: refills of the window and a raised quota are named,
// and another program's value is not claimed.
func TestSentenceSaysWhatWasDone(t *testing.T) {
	quota := func(c *report.Container, requested, inForce time.Duration) {
		c.Quota.Requested, c.Quota.InForce = requested, inForce
	}
	for _, c := range []struct {
		name   string
		change func(*report.Container)
		want   string
	}{
		{"nothing", func(*report.Container) {}, "0.5 CPUs."},
		{"one refill", func(c *report.Container) { c.Totals.Refills++ }, "0.5 CPUs; Plimsoll made 1 refill."},
		{"refills", func(c *report.Container) { c.Totals.Refills += 393 }, "0.5 CPUs; Plimsoll made 393 refills."},
		{"a raise", func(c *report.Container) { quota(c, 75*ms, 75*ms) },
			"0.5 CPUs; Plimsoll has raised the quota to 0.75 CPUs."},
		{"both", func(c *report.Container) {
			c.Totals.Refills += 2
			quota(c, 150*ms, 150*ms)
		}, "0.5 CPUs; Plimsoll made 2 refills, and has raised the quota to 1.5 CPUs."},
		{"another program's value", func(c *report.Container) { quota(c, 50*ms, 150*ms) }, "0.5 CPUs."},
		{"a raise that was refused", func(c *report.Container) { quota(c, 150*ms, 50*ms) }, "0.5 CPUs."},
	} {
		var tr Tracker
		tr.Add(status(0, web(nil)), nil, nil)
		v := tr.Add(status(Window, web(func(r *report.Container) {
			lost(3200*ms, 40)(r)
			c.change(r)
		})), nil, nil)
		if !strings.HasSuffix(v.Sentence, "throttled by its own limit of "+c.want) {
			t.Errorf("%s: %s", c.name, v.Sentence)
		}
	}
}
