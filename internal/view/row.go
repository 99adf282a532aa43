package view

import "time"

// Same says whether nothing in a row has changed.
func (r *Row) Same(o *Row) bool {
	a, b := *r, *o
	for _, one := range []*Row{&a, &b} {
		one.Limit, one.Lost, one.Tokens, one.Quota, one.QuotaAsked = nil, nil, nil, nil, nil
		one.Used, one.Peak, one.Throttled, one.Refills, one.Paused, one.LastLost = nil, nil, nil, nil, nil, nil
		one.Requests = nil
	}
	return a == b && same(r.Limit, o.Limit) && same(r.Lost, o.Lost) && same(r.Tokens, o.Tokens) &&
		same(r.Quota, o.Quota) &&
		same(r.QuotaAsked, o.QuotaAsked) && same(r.Used, o.Used) && same(r.Peak, o.Peak) &&
		same(r.Throttled, o.Throttled) &&
		same(r.Refills, o.Refills) && sameTime(r.Paused, o.Paused) && sameTime(r.LastLost, o.LastLost) &&
		same(r.Requests, o.Requests)
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func sameTime(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }
