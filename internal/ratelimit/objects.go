// Package ratelimit bounds how often something is said about one object, and about all objects together.
//
// # Problem
//
// A log line or an Event about a pod is caused by whoever may write the pod: as often, and about as many pods, as they
// like. Without a bound one tenant hides what is said about others, fills a disk, or keeps the API server busy.
//
// # Approach
//
// Each object has a token bucket, and all have one besides. A bucket that is full again is as good as a new one, and is
// forgotten. What is left out is counted, and the count is said later. Time is an argument: that of the log line.
//
// # Known limits
//
// There are at most maxObjects buckets. When all of them are in use, further objects share one. A tenant with very many
// objects can use up the bucket of all; warnings have one apart from other lines.
package ratelimit

import (
	"time"

	"golang.org/x/time/rate"
)

// Rate is so many at once, and one more after each interval.
type Rate struct {
	Burst int
	Every time.Duration
}

// Bucket makes a full token bucket.
func (r Rate) Bucket() *rate.Limiter { return rate.NewLimiter(rate.Every(r.Every), r.Burst) }

// The bounds of what is kept of objects.
const (
	maxObjects = 1024
	maxName    = 256
)

// Objects are the buckets of objects by name. It is not safe for use by several goroutines.
type Objects struct {
	each    Rate
	all     *rate.Limiter // nil: no bound of all together
	buckets map[string]*rate.Limiter
	others  *rate.Limiter // of the objects that have no bucket of their own
	swept   time.Time     // when full buckets were looked for
}

// NewObjects makes buckets of a rate for each object, and one of another rate for all objects together.
func NewObjects(each Rate, all *Rate) *Objects {
	o := &Objects{each: each, buckets: map[string]*rate.Limiter{}, others: each.Bucket()}
	if all != nil {
		o.all = all.Bucket()
	}
	return o
}

// Allow takes a token of the object, and one of all, if both have one.
func (o *Objects) Allow(now time.Time, object string) bool {
	b := o.bucket(now, object)
	if b.TokensAt(now) < 1 || o.all != nil && !o.all.AllowN(now, 1) {
		return false
	}
	return b.AllowN(now, 1)
}

func (o *Objects) bucket(now time.Time, object string) *rate.Limiter {
	object = shortened(object)
	if b := o.buckets[object]; b != nil {
		return b
	}
	if len(o.buckets) >= maxObjects && now.Sub(o.swept) >= o.each.Every { // not for each of many new objects
		o.swept = now
		for name, b := range o.buckets {
			if b.TokensAt(now) >= float64(o.each.Burst) {
				delete(o.buckets, name)
			}
		}
	}
	if len(o.buckets) >= maxObjects {
		return o.others
	}
	b := o.each.Bucket()
	o.buckets[object] = b
	return b
}

// shortened bounds what is kept of a name. The path of a pod's group is shorter,
// so that no other one shares its bucket.
func shortened(name string) string { return name[:min(len(name), maxName)] }
