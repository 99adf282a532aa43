package report

import (
	"slices"
	"time"
)

// Same says whether nothing about a container has changed, but what is not in its JSON.
func (c *Container) Same(o *Container) bool {
	a, b := *c, *o
	for _, one := range []*Container{&a, &b} {
		one.Paused, one.BudgetLeft, one.RefillsOff = nil, nil, nil
		one.Quota.Since, one.Burst.Since = nil, nil
		one.Receipt, one.Requests = nil, nil
		one.Totals.Events, one.Totals.Waited = nil, nil
	}
	return a == b && sameTime(c.Paused, o.Paused) && sameValue(c.BudgetLeft, o.BudgetLeft) &&
		sameTime(c.RefillsOff, o.RefillsOff) &&
		sameTime(c.Quota.Since, o.Quota.Since) && sameTime(c.Burst.Since, o.Burst.Since) &&
		sameValue(c.Receipt, o.Receipt) && c.Totals.Events.Same(o.Totals.Events) &&
		c.Totals.Waited.same(o.Totals.Waited) && c.Requests.same(o.Requests)
}

func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}

func sameValue[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// Same says whether nothing about throttles has changed, but what is not in their JSON.
func (t *Throttles) Same(o *Throttles) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.Begun == o.Begun && t.Ended == o.Ended && t.Unreported == o.Unreported && t.Wall == o.Wall &&
		t.Foreseen == o.Foreseen && sameValue(t.Requests, o.Requests) && t.Last == o.Last && t.Peak == o.Peak &&
		t.Second == o.Second && slices.Equal(t.Lengths, o.Lengths)
}

func (w *Waited) same(o *Waited) bool {
	if w == nil || o == nil {
		return w == o
	}
	return w.Wanted == o.Wanted && w.Received == o.Received && w.Beside == o.Beside && slices.Equal(w.Waits, o.Waits) &&
		slices.Equal(w.Neighbours, o.Neighbours)
}
