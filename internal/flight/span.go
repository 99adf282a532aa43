package flight

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Span is a time, in Unix ms. To is not in it.
type Span struct{ From, To int64 }

// Spans are times in order, between which there are gaps.
type Spans []Span

// Union is all that is in either of two.
func Union(a, b Spans) (all Spans) {
	list := slices.Concat(a, b)
	slices.SortFunc(list, func(x, y Span) int { return cmp.Compare(x.From, y.From) })
	for _, s := range list {
		switch n := len(all); {
		case s.To <= s.From: // nothing
		case n > 0 && s.From <= all[n-1].To:
			all[n-1].To = max(all[n-1].To, s.To)
		default:
			all = append(all, s)
		}
	}
	return all
}

// Within is what is in a time.
func (s Spans) Within(from, to int64) (in Spans) {
	for _, one := range s {
		if one.From, one.To = max(one.From, from), min(one.To, to); one.From < one.To {
			in = append(in, one)
		}
	}
	return in
}

// Length is that of all.
func (s Spans) Length() (sum time.Duration) {
	for _, one := range s {
		sum += time.Duration(one.To-one.From) * time.Millisecond
	}
	return sum
}

// minutes are all whole minutes of which something is in a span.
func (s Spans) minutes() (whole Spans) {
	for _, one := range s {
		whole = append(whole, Span{minuteOf(one.From), minuteOf(one.To + minuteMs - 1)})
	}
	return Union(whole, nil)
}

// spell writes spans of whole units, as runs of the first and the number: "29401630+10 29401700+2".
func (s Spans) spell(unit int64) string {
	var b strings.Builder
	for _, one := range s {
		fmt.Fprintf(&b, " %d+%d", one.From/unit, (one.To-one.From)/unit)
	}
	return strings.TrimPrefix(b.String(), " ")
}

// parseSpans reads what spell has written under a key of the metadata.
func parseSpans(key, text string, unit int64) (list Spans, err error) {
	for _, one := range strings.Fields(text) {
		first, count, _ := strings.Cut(one, "+")
		at, err1 := strconv.ParseInt(first, 10, 64)
		n, err2 := strconv.ParseInt(count, 10, 64)
		if err := errors.Join(err1, err2); err != nil || at < 0 || at > maxTime/unit || n < 1 || n > maxTime/unit {
			return nil, fmt.Errorf("%w: metadata %s: %.40q", ErrDamaged, key, one)
		}
		list = append(list, Span{at * unit, (at + n) * unit})
	}
	return Union(list, nil), nil
}

// maxTime, in ms, bounds the begin and the length of a span, so that both together fit into nanoseconds.
const maxTime = math.MaxInt64 / int64(4*time.Millisecond)
