package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"plimsoll/internal/recent"
	"plimsoll/internal/view"
)

// changes is what differs between two scenes. A part that is absent has not changed.
type changes struct {
	Now        time.Time       `json:"now"`
	Window     time.Duration   `json:"window_ns"`
	Mode       string          `json:"mode"`
	HeldReason string          `json:"held_reason"`
	Sentence   string          `json:"sentence"`
	Mark       json.RawMessage `json:"mark,omitempty"`
	Rows       []*view.Row     `json:"rows"`
	Gone       []string        `json:"gone"`
	Recording  json.RawMessage `json:"recording,omitempty"`
	Problems   json.RawMessage `json:"problems,omitempty"`
	Colocation json.RawMessage `json:"colocation,omitempty"`
	Reserve    json.RawMessage `json:"reserve,omitempty"`
	Waits      json.RawMessage `json:"waits,omitempty"`
}

// changeEvent is the event that takes a page from one view to the next.
func changeEvent(old, now *view.View) []byte {
	c := changes{Now: now.Now, Window: now.Window, Mode: string(now.Mode), HeldReason: now.HeldReason,
		Sentence: now.Sentence,
		Rows:     []*view.Row{}, Gone: []string{}}
	before := make(map[string]*view.Row, len(old.Rows))
	for i := range old.Rows {
		before[old.Rows[i].ID] = &old.Rows[i]
	}
	for i := range now.Rows {
		row := &now.Rows[i]
		if was := before[row.ID]; was == nil || !row.Same(was) {
			c.Rows = append(c.Rows, row)
		}
		delete(before, row.ID)
	}
	for id := range before {
		c.Gone = append(c.Gone, id)
	}
	for _, part := range []struct {
		to       *json.RawMessage
		old, now any
	}{{&c.Mark, old.Mark, now.Mark}, {&c.Recording, old.Recording, now.Recording},
		{&c.Problems, old.Problems, now.Problems},
		{&c.Colocation, old.Colocation, now.Colocation}, {&c.Reserve, old.Reserve, now.Reserve}, {&c.Waits, old.Waits,
			now.Waits}} {
		a, err1 := json.Marshal(part.old)
		b, err2 := json.Marshal(part.now)
		if err1 == nil && err2 == nil && !bytes.Equal(a, b) {
			*part.to = b
		}
	}
	return event("change", c)
}

// event is one of a stream of server-sent events. JSON has no line break.
func event(name string, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil { // a number that JSON cannot write
		return fmt.Appendf(nil, ": %s: %v\n\n", name, err)
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data)
}

// agentState is the event that says whether the agent is there.
type agentState struct {
	OK    bool       `json:"ok"`
	Why   string     `json:"why,omitempty"`
	Since *time.Time `json:"since,omitempty"`
}

// detailEvery is how often a detail is sent anew, of which the periods come each second. It comes at once where the
// settings have changed that it depends on.
const detailEvery = 10 * time.Second

// settings are what a detail depends on besides its periods.
type settings struct {
	policy               string
	limit, period, burst time.Duration
}

func settingsOf(row *view.Row) settings {
	s := settings{policy: row.Policy, period: row.Period, burst: row.Burst, limit: -1}
	if row.Limit != nil {
		s.limit = *row.Limit
	}
	return s
}

// liveFor is how long a stream lasts. Who may read is asked at its beginning only, so a right that was withdrawn ends
// with the stream. The page opens the next one at once.
const liveFor = time.Minute

// live is a stream of server-sent events. A page that is hidden closes its stream, and costs nothing.
func (w *watcher) live(d *side) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), liveFor)
		defer cancel()
		l := &liveReader{watcher: w, client: clientOf(r), end: cancel, container: r.URL.Query().Get("container"), n: -1}
		if !w.join(l) {
			d.fail(rw, busy("too many pages are open"))
			return
		}
		defer w.leave(l)
		rw.Header().Set("Connection", "close") // the next handshake verifies the client's certificate again
		l.stream = newStream(rw, "text/event-stream")
		if err := l.run(ctx); err != nil {
			d.log.Debug("live", "error", err) // the client is gone
		}
	}
}

// liveReader is one page that is open.
type liveReader struct {
	*watcher
	stream    *stream
	client    string // whose it is (clientOf)
	end       func()
	container string // "": none
	n         int    // of the scene that it has seen; -1: none
	lost      bool
	detailed  time.Time // when it had the last detail
	shownFor  settings  // that the last detail was made for
	strip     strip
}

const quietEvery = time.Second // between two events at most

func (l *liveReader) run(ctx context.Context) error {
	quiet := time.NewTicker(quietEvery)
	defer quiet.Stop()
	if err := l.stream.write([]byte(": plimsoll\n\n")); err != nil {
		return err
	}
	var shown *scene
	for {
		s, next := l.latest()
		if s != nil && s != shown {
			if err := l.show(s); err != nil {
				return err
			}
			shown = s
			quiet.Reset(quietEvery)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.done:
			return nil
		case <-next:
		case <-quiet.C:
			if err := l.stream.write(l.quiet(s)); err != nil {
				return err
			}
		}
	}
}

// quiet is what is sent where nothing is new.
func (l *liveReader) quiet(s *scene) []byte {
	switch {
	case l.fixed != nil:
		return []byte(": a recording\n\n")
	case s == nil:
		return event("agent", agentState{OK: true, Why: "waiting for the agent"})
	case s.lost != "":
		return event("agent", agentState{Why: s.lost, Since: &s.since})
	}
	// A comment would do, but pages do not see it: EventSource drops comments.
	return event("agent", agentState{OK: true})
}

// show sends what the reader has not seen of a scene.
func (l *liveReader) show(s *scene) error {
	if s.lost != "" {
		l.lost, l.n = true, -1
		return l.stream.write(l.quiet(s))
	}
	var out []byte
	if l.lost {
		l.lost = false
		out = append(out, event("agent", agentState{OK: true})...)
	}
	if l.n >= 0 && s.n == l.n+1 && s.change != nil {
		out = append(out, s.change...)
	} else {
		out = append(out, event("view", s.view)...)
	}
	l.n = s.n
	return l.stream.write(append(out, l.detail(s)...))
}

// detail is what is new of the container.
func (l *liveReader) detail(s *scene) []byte {
	if l.container == "" {
		return nil
	}
	now := s.view.Now
	at := slices.IndexFunc(s.view.Rows, func(r view.Row) bool { return r.ID == l.container })
	if at < 0 {
		return nil // it is gone, as the view says
	}
	row := &s.view.Rows[at]
	if l.detailed.IsZero() || now.Sub(l.detailed) >= detailEvery || now.Before(l.detailed) ||
		l.shownFor != settingsOf(row) {
		first := l.detailed.IsZero()
		d, list, err := l.watcher.detail(s, l.container)
		if err != nil {
			return nil // a recording without it
		}
		l.detailed, l.shownFor = now, settingsOf(row)
		if !first {
			d.Periods = (&view.Strip{}).Add(d.Row, nil)
			return append(event("detail", d), l.periods(s, d.Row)...)
		}
		l.strip = strip{}
		l.strip.add(d.Row, list)
		return event("detail", d)
	}
	return l.periods(s, *row)
}

// periods are the new ones.
func (l *liveReader) periods(s *scene, row view.Row) []byte {
	if p := l.strip.next(l.watcher, s, row); len(p.End) > 0 {
		return event("periods", p)
	}
	return nil
}

// strip is what one reader has of the periods of one container.
type strip struct {
	view.Strip
	end int64     // of the last one
	at  time.Time // of the last scene
}

// next are those that the reader has not had, of the last 15 minutes.
func (r *strip) next(w *watcher, s *scene, row view.Row) view.Periods {
	if s.view.Now.Before(r.at) { // the clock was set back
		*r = strip{}
	}
	r.at = s.view.Now
	after := s.view.Now.Add(-recent.Keep)
	if r.end > 0 {
		after = time.UnixMilli(r.end)
	}
	return r.add(row, w.periodsOf(row.ID, after))
}

func (r *strip) add(row view.Row, list []recent.Period) view.Periods {
	if len(list) > 0 {
		r.end = list[len(list)-1].End
	}
	return r.Add(row, list)
}
