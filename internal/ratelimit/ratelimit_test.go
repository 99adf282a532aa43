package ratelimit

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll/internal/logbook"
)

// TestObjects: an object has its burst at once, and then one at each interval, whatever others have.
func TestObjects(t *testing.T) {
	now := time.Unix(1000, 0)
	o := NewObjects(Rate{3, time.Minute}, nil)
	count := func(object string, n int) (allowed int) {
		for range n {
			if o.Allow(now, object) {
				allowed++
			}
		}
		return allowed
	}
	if got := count("a", 1000); got != 3 {
		t.Errorf("at once: %d", got)
	}
	if got := count("b", 2); got != 2 {
		t.Errorf("another object: %d", got)
	}
	now = now.Add(time.Minute)
	if got := count("a", 10); got != 1 {
		t.Errorf("after a minute: %d", got)
	}
	now = now.Add(time.Hour)
	if got := count("a", 10); got != 3 {
		t.Errorf("after an hour: %d", got)
	}
}

// TestObjectsTogether: the bound of all is not used up by an object that has had its share.
func TestObjectsTogether(t *testing.T) {
	now := time.Unix(1000, 0)
	o := NewObjects(Rate{3, time.Minute}, &Rate{5, time.Second})
	for range 100 {
		o.Allow(now, "loud")
	}
	if !o.Allow(now, "a") || !o.Allow(now, "b") || o.Allow(now, "c") {
		t.Error("3 of one object, and one each of two others: 5 in all")
	}
	for range 100 {
		o.Allow(now, "d") // none, and none of its own is used up
	}
	now = now.Add(3 * time.Second)
	for n := range 3 {
		if !o.Allow(now, "d") {
			t.Errorf("%d in 3 seconds, want 3", n)
		}
	}
	if o.Allow(now, "e") {
		t.Error("more than 3 in 3 seconds")
	}
}

// TestObjectsAreBounded: neither many objects nor long names take memory for ever.
func TestObjectsAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	o := NewObjects(Rate{2, time.Minute}, nil)
	for i := range 10 * maxObjects {
		o.Allow(now, fmt.Sprint(i))
	}
	if len(o.buckets) != maxObjects {
		t.Errorf("%d buckets", len(o.buckets))
	}
	if o.Allow(now, "one more") {
		t.Error("those beyond have a bucket each")
	}
	now = now.Add(time.Hour)
	if !o.Allow(now, strings.Repeat("x", 5000)) || len(o.buckets) != 1 {
		t.Errorf("%d buckets stay though they are full", len(o.buckets))
	}
	for name := range o.buckets {
		if len(name) > maxName {
			t.Errorf("a name of %d bytes is kept", len(name))
		}
	}
}

// TestObjectsInUseKeepTheirBuckets: neither does an object get a new burst by many new objects, nor does each of these
// have all buckets searched.
func TestObjectsInUseKeepTheirBuckets(t *testing.T) {
	now := time.Unix(1000, 0)
	o := NewObjects(Rate{2, time.Minute}, nil)
	for o.Allow(now, "loud") {
	}
	crowd := func(name string) {
		for i := range 2 * maxObjects {
			o.Allow(now, fmt.Sprint(name, i))
		}
	}
	crowd("a")
	swept := o.swept
	now = now.Add(time.Minute - time.Nanosecond)
	if crowd("b"); !o.swept.Equal(swept) {
		t.Error("the buckets were searched twice in a minute")
	}
	now = now.Add(time.Nanosecond)
	if crowd("c"); o.swept.Equal(swept) || o.buckets["loud"] == nil {
		t.Error("the bucket of an object in use is forgotten, or none was searched for")
	}
	if !o.Allow(now, "loud") || o.Allow(now, "loud") {
		t.Error("after a minute an object has one token")
	}
}

// TestLines: lines about one object are bounded, those about none are not, and a count of what is missing follows.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b logbook.Book
		lines := NewLines(Rate{2, time.Hour}, Rate{1000, time.Hour})
		log := slog.New(lines.Over(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { lines.Run(ctx, log); close(done) }()
		counts := func(what string, want int, of string) {
			t.Helper()
			if got := strings.Count(b.String(), of); got != want {
				t.Errorf("%s: %d, want %d:\n%s", what, got, want, b.String())
			}
		}
		bound := log.With("knob", "quota", "cgroup", "/lab/with")
		for range 10 {
			log.Warn("about", "cgroup", "/lab/a")
			log.Info("about", "object", "Pod default/web", "cgroup", "/lab/b")
			bound.Warn("about")
			log.WithGroup("g").With("x", 1).Warn("about", "cgroup", "/lab/grouped")
			log.Warn("about none")
			log.Debug("verbose", "cgroup", "/lab/a")
		}
		counts("by an attribute", 2, "msg=about cgroup=/lab/a\n")
		counts("by the first of two", 2, `object="Pod default/web"`)
		counts("by the logger's attribute", 2, "cgroup=/lab/with")
		counts("in a group", 2, "g.cgroup=/lab/grouped")
		counts("about no object", 10, "about none")
		counts("verbose", 10, "msg=verbose")
		time.Sleep(reportEvery + time.Second)
		counts("the report", 1,
			`left out of the log: there were too many" lines=32 among_others="[/lab/a Pod default/web /lab/with]"`)
		time.Sleep(10 * reportEvery)
		counts("no report without a reason", 1, "left out")
		log.Warn("about", "cgroup", "/lab/a")
		cancel()
		<-done
		counts("the last report", 1, "lines=1 ")
		if lines.Dropped() != 33 {
			t.Errorf("%d dropped", lines.Dropped())
		}
	})
}

// TestWarningsHaveABoundOfTheirOwn: many lines that tell no fault do not hide one that does.
func TestWarningsHaveABoundOfTheirOwn(t *testing.T) {
	var b strings.Builder
	log := slog.New(NewLines(Rate{1, time.Hour}, Rate{10, time.Hour}).Over(slog.NewTextHandler(&b, nil)))
	for i := range 100 {
		log.Info("write", "cgroup", fmt.Sprint("/lab/", i))
	}
	log.Warn("fault", "cgroup", "/lab/1")
	if strings.Count(b.String(), "msg=write") != 10 || !strings.Contains(b.String(), "msg=fault") {
		t.Error(b.String())
	}
}
