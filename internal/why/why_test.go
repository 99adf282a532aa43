package why

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"plimsoll/internal/report"
	"plimsoll/internal/view"
)

const ms = time.Millisecond

func ptr[T any](v T) *T { return &v }

func quoted(arg string) string { return "'" + arg + "'" }

func row() view.Row {
	return view.Row{ID: "/kubepods/a", Name: "shop/checkout/api", Pod: "shop/checkout", Policy: "auto",
		Period: 100 * ms, Limit: ptr(50 * ms), Quota: ptr(150 * ms), QuotaAsked: ptr(150 * ms), Lost: ptr(4200 * ms),
		Throttled: ptr(int64(131)), Refills: ptr(int64(393)), Peak: ptr(1.48), Burst: 50 * ms, BurstChanged: true,
		Why: "throttled in 4 of 10 periods"}
}

func TestParagraph(t *testing.T) {
	const ownLimit = "Its limit is 0.50 CPUs, and its work came faster than that. It used up to 1.48 CPUs in one " +
		"period. Plimsoll ended or prevented 393 throttles by refills, and raised its quota to 1.50 CPUs, and lets " +
		"it save up to 50ms of unused time. Its last decision: throttled in 4 of 10 periods. To do: nothing, if the " +
		"time lost is small; else raise its limit, for which `plimsoll advise --live` has a figure."
	v := view.View{Window: time.Minute, Mode: report.Active, Mark: view.Mark{Node: report.Node{Used: 7.9, Capacity: 8}}}
	for name, c := range map[string]struct {
		change func(*view.Row)
		want   string
	}{
		"own limit": {func(r *view.Row) { r.Cause = view.OwnLimit },
			"shop/checkout/api stood still for 4.2s of the last 1m0s, in 131 of its periods. " + ownLimit},
		"requests": {func(r *view.Row) {
			*r = view.Row{Name: "free", Requests: &report.RequestWindow{Window: time.Minute, Answered: 1200,
				Response: report.Quantiles{P50: 4 * ms, P90: 9 * ms, P99: 105 * ms},
				Unthrottled: report.Quantiles{
					P99: 15 * ms}, Time: 9 * time.Second, Throttled: 3 * time.Second, ThrottledKnown: true}}
		},
			"free has no CPU limit: it stands still at none. Its requests, in the last whole minute: 20.0/s " +
				"answered in 4ms (p50), 9ms (p90), 105ms (p99); 33.3 % of the " +
				"time throttled, p99 without it 15ms. If it is slow, something else keeps it from a CPU: `plimsoll " +
				"diagnose x` measures what."},
		"nothing": {func(r *view.Row) {
			r.Lost, r.Throttled, r.Refills, r.Quota, r.Why = ptr(time.Duration(0)), ptr(int64(0)), ptr(
				int64(0)), r.Limit, ""
		},
			"shop/checkout/api lost no time at its limit of 0.50 CPUs in the last 1m0s. Plimsoll lets it save up to " +
				"50ms of unused time. " +
				"If it is slow, something else keeps it from a CPU: `plimsoll diagnose x` measures what."},
		"no limit": {func(r *view.Row) { *r = view.Row{Name: "free"} },
			"free has no CPU limit: it stands still at none. If it is slow, something else keeps it from a CPU: " +
				"`plimsoll diagnose x` measures what."},
		"policy": {func(r *view.Row) {
			r.Cause, r.Policy, r.Quota, r.Refills, r.Burst, r.Why, r.Peak =
				view.PolicyNone, "none", r.Limit, nil, 0, "", nil
		}, "shop/checkout/api stood still for 4.2s of the last 1m0s, in 131 of its periods. Its limit is 0.50 CPUs, " +
			"and its policy is none: nobody has asked for more. " +
			"Plimsoll did nothing about it. To do: set its policy to auto, or raise its limit."},
		"refilled at once": {func(r *view.Row) {
			r.Cause, r.Lost, r.Throttled = view.OwnLimit, ptr(300*time.Microsecond), nil
		},
			"shop/checkout/api stood still for less than 1ms of the last 1m0s. " + ownLimit},
		"another program's quota": {func(r *view.Row) {
			r.Cause, r.Problem = view.Refused, "another program set the quota to 150ms; it is left alone"
			r.QuotaAsked, r.Refills, r.Burst, r.Why, r.Peak = r.Limit, nil, 0, "", nil
		}, "shop/checkout/api stood still for 4.2s of the last 1m0s, in 131 of its periods. Its limit is 0.50 CPUs, " +
			"and a write was refused: another program set the quota to 150ms; it is left alone. " +
			"Plimsoll did nothing about it. To do: see `plimsoll doctor`, and which program writes its files."},
		"its owner's burst": {func(r *view.Row) {
			r.Cause, r.Policy, r.Quota, r.Refills, r.BurstChanged, r.Why, r.Peak =
				view.PolicyNone, "none", r.Limit, nil, false, "", nil
		}, "shop/checkout/api stood still for 4.2s of the last 1m0s, in 131 of its periods. Its limit is 0.50 CPUs, " +
			"and its policy is none: nobody has asked for more. " +
			"Plimsoll did nothing about it. To do: set its policy to auto, or raise its limit."},
		"refills": {func(r *view.Row) {
			r.Cause, r.Quota, r.Refills, r.Burst, r.Why, r.Peak = view.RefillsOff, r.Limit, nil, 0, "", nil
		}, "shop/checkout/api stood still for 4.2s of the last 1m0s, in 131 of its periods. Its limit is 0.50 CPUs, " +
			"and refills have no effect here. " + // on the node, or of this container only
			"Plimsoll did nothing about it. To do: see `plimsoll doctor`; quotas are raised meanwhile."},
		"guard": {func(r *view.Row) {
			r.Cause, r.Peak, r.Burst, r.Refills, r.Quota, r.Why =
				view.Guard, nil, 0, nil, r.Limit, "node is overloaded: no raise"
		},
			"shop/checkout/api stood still for 4.2s of the last 1m0s, in 131 of its periods. Its limit is 0.50 " +
				"CPUs, and the node has nothing to spare: 7.90 of 8.00 CPUs are used. " +
				"Plimsoll did nothing about it. Its last decision: node is overloaded: no raise. To do: move work " +
				"off this node, or raise sharePoolThresholdPercent; " +
				"reserve for it what it must have."},
	} {
		r := row()
		c.change(&r)
		if got := Paragraph(v, r, "`plimsoll diagnose x`", quoted); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// TestParagraphOfThePod: where the pod has a row of its own, the time that its limit took is told of each container,
// and of the pod once where the pod is asked for.
func TestParagraphOfThePod(t *testing.T) {
	pod := view.Row{ID: "/pod", Name: "shop/web", Level: "pod", Period: 100 * ms, Limit: ptr(200 * ms),
		Lost: ptr(4200 * ms), Throttled: ptr(int64(131)), Cause: view.PodLimit}
	v := view.View{Window: time.Minute, Rows: []view.Row{pod,
		{ID: "/pod/api", Name: "shop/web/api", Pod: "shop/web", Lost: ptr(time.Duration(0))},
		{ID: "/pod/side", Name: "shop/web/side", Pod: "shop/web", Limit: ptr(50 * ms), Period: 100 * ms,
			Lost: ptr(time.Duration(0))},
		{ID: "/pod2/api", Name: "shop/web2/api", Pod: "shop/web2", Lost: ptr(time.Duration(0))}}}
	const told = "shop/web stood still for 4.2s of the last 1m0s, in 131 of its periods. Its limit is 2.00 CPUs, " +
		"and its work came faster than that. Plimsoll did nothing about it. To do: raise the pod's limit; that of " +
		"the container is not in the way."
	const with = " stood still with its pod, whose limit is for all its containers. "
	for arg, want := range map[string]string{"shop/web": told, "shop/web/api": "shop/web/api" + with + told,
		"shop/web/side": "shop/web/side" + with + told,
		"shop/web2/api": "shop/web2/api has no CPU limit: it stands still at none. If it is slow, something else " +
			"keeps it from a CPU: x measures what."} {
		var got []string
		for _, r := range Rows(v, arg) {
			got = append(got, Paragraph(v, r, "x", quoted))
		}
		if got := strings.Join(got, "\n"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", arg, got, want)
		}
	}
}

// TestEachCauseHasItsStep: no two causes are told alike, and each has something to do.
func TestEachCauseHasItsStep(t *testing.T) {
	said := map[string]view.Cause{}
	for _, c := range []view.Cause{view.OwnLimit, view.PodLimit, view.AtCap, view.LoadLine, view.ExtraCores,
		view.Budget, view.Guard, view.Refused, view.Paused, view.Held, view.PolicyNone, view.RefillsOff} {
		r := row()
		r.Cause, r.Problem = c, "refused: invalid argument\x1b[2J"
		got := Paragraph(view.View{Window: time.Minute}, r, "x", quoted)
		with := Paragraph(view.View{Window: time.Minute, Flags: "--state-dir /s"}, r, "x", quoted)
		if strings.Contains(got, "`plimsoll ") && !strings.Contains(with, " --state-dir /s`") {
			t.Errorf("%s: a command without its flags: %s", c, with)
		}
		if other, is := said[got]; is || !strings.Contains(got, "To do: ") ||
			strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s: as %s, without a step, or not printable: %s", c, other, got)
		}
		said[got] = c
	}
}

// TestRows: an exact name goes before a part of one, and of a pod all containers are meant, the worst first.
func TestRows(t *testing.T) {
	v := view.View{Rows: []view.Row{{ID: "/1", Name: "shop/web/a", Pod: "shop/web"},
		{ID: "/2", Name: "shop/web/b", Pod: "shop/web", Lost: ptr(ms)},
		{ID: "/3", Name: "shop/web-2/a", Pod: "shop/web-2"}, {ID: "/4", Name: "db/main", Level: "pod", Limit: ptr(ms)},
		{ID: "/5", Name: "db/main/c", Pod: "db/main", Limit: ptr(ms)},
		{ID: "/6", Name: "0123456789ab", Pod: "db/main"}}}
	for arg, want := range map[string]string{"shop/web": "/2", "web": "/2", "db/main": "/5", "0123": "/6", "web-": "/3",
		"shop/web/a": "/1", "a": "/1 /3", "/2": "/2", "zzz": ""} {
		var ids []string
		for _, r := range Rows(v, arg) {
			ids = append(ids, r.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %q, want %q", arg, got, want)
		}
	}
}
