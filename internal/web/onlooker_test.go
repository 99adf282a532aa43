package web

import (
	"context"
	"testing"
	"time"

	"plimsoll/internal/recent"
	"plimsoll/internal/report"
)

// TestOnlooker: each view is another one, and each period comes once; of a container that is not watched it says so;
// and without an agent there is an error.
func TestOnlooker(t *testing.T) {
	s := onStage(t, &tape{}, nil)
	s.agent.set(func(st *report.Status) {
		b := &st.Containers[1]
		b.Limit, b.Totals.Events = 50*time.Millisecond, nil // with policy none
	})
	o := Watch(s.site.agent, "node-1", time.Now, quiet())
	t.Cleanup(o.Close)
	one, err := o.View(t.Context())
	if err != nil || len(one.Rows) != 2 || one.Node != "node-1" {
		t.Fatalf("%v: %+v", err, one)
	}
	if two, err := o.View(t.Context()); err != nil || !two.Now.After(one.Now) {
		t.Errorf("the same view twice: %v, %v and %v", err, one.Now, two.Now)
	}
	end := time.Now().UnixMilli()
	var ends []int64
	read := func(want int) {
		s.eventually("periods", func() bool {
			p, recorded := o.Periods("/lab/a")
			if !recorded {
				t.Fatal("they are not recorded")
			}
			ends = append(ends, p.End...)
			return len(ends) >= want
		})
	}
	s.tape.add("/lab/a", recent.Period{End: end, Used: 1}, recent.Period{End: end + 100, Used: 2})
	read(2)
	s.tape.add("/lab/a", recent.Period{End: end + 200, Used: 3})
	read(3)
	if ends[0] != end || ends[1] != end+100 || ends[2] != end+200 {
		t.Errorf("%v", ends)
	}
	if _, recorded := o.Periods("/lab/b"); recorded {
		t.Error("periods of a container that is not watched")
	}
	if p, recorded := o.Periods("/lab/a"); !recorded || len(p.End) != 0 {
		t.Errorf("%v, %v: they came before", recorded, p.End)
	}
	s.stop()
	s.eventually("an error", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := o.View(ctx)
		return err != nil
	})
}
