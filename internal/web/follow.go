package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"plimsoll/internal/recent"
	"plimsoll/internal/report"
)

// The agent tells those who follow it what changes, once a second.
//
// Problem: a page shows a thousand containers, each second. A status of them is a megabyte of JSON, and takes a program
// a twentieth of a second to write and as much to read.
//
// Approach: a stream of frames on the readers' socket, one JSON object a line. The first frame has the whole status;
// each further one only the containers that differ from the frame before. A busy container has other counters and
// another reason of its last decision in most frames: where nothing else differs, a frame has these alone. Periods are
// in it as package recent writes them. All followers share the frames. While nobody follows, no status is taken and
// the kernel records no periods. Successive statuses are in two lists of containers, used in turn: a list of a thousand
// is most of a megabyte, and with a new one each second the agent would collect its small heap every few seconds.
//
// Known limits: counters that no page shows are as old as the container's last whole appearance. A follower that does
// not read is cut off, and has to begin again with a whole status.

// Periods is where the kernel's records of periods come from.
type Periods interface {
	// Record has periods recorded from now on, or not any more. The error says why periods are not measured here.
	Record(on bool) error
	// Take returns the periods that have ended since the last call by the group's path, and how many found no room in
	// all. It is called several times a second while periods are recorded.
	Take() (ended map[string][]recent.Period, lost int64, err error)
}

// frame is what is new since the last one.
type frame struct {
	Whole   bool              `json:"whole"`             // Status has all containers, not only those that changed
	Status  report.Status     `json:"status"`            // its containers are those that changed
	Counts  map[string]counts `json:"counts,omitempty"`  // by cgroup path: of containers that are not in Status
	Whys    map[string]string `json:"whys,omitempty"`    // by cgroup path: the same
	Gone    []string          `json:"gone,omitempty"`    // cgroup paths
	Periods map[string][]byte `json:"periods,omitempty"` // by cgroup path
	Lost    int64             `json:"lost"`              // periods that found no room, since recording began
	Missing string            `json:"missing,omitempty"` // why periods are not measured
}

// counts are the counters that a page shows.
type counts [5]int64

func countsOf(t *report.Totals) counts {
	return counts{int64(t.Usage), int64(t.ThrottledWall), t.Throttled, t.Refills, t.AtCap}
}

// into sets them.
func (n counts) into(t *report.Totals) {
	t.Usage, t.ThrottledWall, t.Throttled, t.Refills, t.AtCap = time.Duration(n[0]), time.Duration(
		n[1]), n[2], n[3], n[4]
}

const (
	frameEvery   = time.Second
	takeEvery    = frameEvery / 4 // periods are taken out of the kernel's ring
	maxFollowers = 4
	ownFollowers = maxFollowers + 2 // for the owner of the control socket: readers leave two places
	frameQueue   = 3                // frames that a follower may be behind
)

// feed makes frames while somebody follows.
type feed struct {
	side    *side
	agent   Agent
	periods Periods // nil: none

	mu        sync.Mutex
	followers map[*follower]bool
	running   bool
	done      chan struct{} // closed when the server ends
}

// follower is one stream. whole: it has had no frame yet.
type follower struct {
	frames chan []byte
	whole  bool
}

func newFeed(d *side, agent Agent, p Periods) *feed {
	return &feed{side: d, agent: agent, periods: p, followers: map[*follower]bool{}, done: make(chan struct{})}
}

// join adds a follower; nil where there are too many.
func (f *feed) join(most int) *follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.followers) >= most {
		return nil
	}
	one := &follower{frames: make(chan []byte, frameQueue), whole: true}
	f.followers[one] = true
	if !f.running {
		f.running = true
		go f.run()
	}
	return one
}

func (f *feed) leave(one *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.followers, one)
}

// begins says that some follower has had no frame yet.
func (f *feed) begins() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.followers {
		if one.whole {
			return true
		}
	}
	return false
}

// end ends all streams, once.
func (f *feed) end() { close(f.done) }

// ended says that nobody follows any more. The recording is ended before anybody else can begin it.
func (f *feed) ended(r *recorder) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.followers) > 0 {
		return false
	}
	f.running = false
	r.stop()
	return true
}

// run makes one frame after the other until nobody follows, and no status is under way:
// so there is never more than one.
func (f *feed) run() {
	r := recorder{from: f.periods}
	r.start()
	g := glances{agent: f.agent, patience: f.side.patience}
	tick := time.NewTicker(takeEvery)
	defer tick.Stop()
	for n := 0; g.awaited != nil || !f.ended(&r); n++ {
		r.take()
		if n%int(frameEvery/takeEvery) == 0 {
			f.frame(&g, &r)
		}
		<-tick.C
	}
}

// frame sends the next frame.
func (f *feed) frame(g *glances, r *recorder) {
	status, ok := g.next(f.begins())
	if !ok {
		r.bound()
		return // the loop hangs: the followers hear nothing, and know by that
	}
	news := compare(g.told, status.Containers)
	g.told, g.spare = status.Containers, g.told
	news.Periods, news.Lost, news.Missing = r.encoded(), r.lost, r.missing
	changed, all := news.Status.Containers, status.Containers
	news.Status = status
	news.Status.Containers = changed
	var some, whole []byte
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.followers {
		data := &some
		if one.whole {
			data = &whole
		}
		if *data == nil {
			if one.whole {
				news.Whole, news.Status.Containers = true, all
			}
			*data = f.line(news)
			news.Whole, news.Status.Containers = false, changed
		}
		select {
		case one.frames <- *data:
			one.whole = false
		default: // it does not read
			close(one.frames)
			delete(f.followers, one)
		}
	}
}

// glances are successive statuses of the agent.
type glances struct {
	agent    Agent
	patience time.Duration        // how long one may take
	told     []report.Container   // as the followers know them
	spare    []report.Container   // for the next status
	awaited  <-chan report.Status // nil: none is under way
}

// next waits for a status. Where it takes too long, ok is false, and the next call waits for the same one: an agent
// that hangs costs one goroutine, and no other status is written to the list that it has. first: a follower forms
// differences from this status, and would take what a quiet group used in half a minute for the use of a second:
// all groups are read.
func (g *glances) next(first bool) (s report.Status, ok bool) {
	if g.awaited == nil {
		answer, list := make(chan report.Status, 1), g.spare
		go func() {
			if first {
				answer <- g.agent.Status()
				return
			}
			answer <- g.agent.Glance(list)
		}()
		g.awaited, g.spare = answer, nil
	}
	select {
	case s = <-g.awaited:
		g.awaited = nil
		return s, true
	case <-time.After(g.patience):
		return s, false
	}
}

func (f *feed) line(news frame) []byte {
	var data bytes.Buffer
	if err := json.NewEncoder(&data).Encode(news); err != nil { // which ends the line
		f.side.log.Error("tell what has changed", "error", err)
	}
	return data.Bytes()
}

// compare finds what is different now. Both lists are ordered by their paths.
func compare(before, now []report.Container) (news frame) {
	news.Status.Containers, news.Counts, news.Whys = []report.Container{}, map[string]counts{}, map[string]string{}
	for i := range now {
		c := &now[i]
		var old *report.Container
		for ; len(before) > 0 && before[0].Cgroup <= c.Cgroup; before = before[1:] {
			if old = &before[0]; old.Cgroup != c.Cgroup {
				news.Gone = append(news.Gone, old.Cgroup)
			}
		}
		if old == nil || old.Cgroup != c.Cgroup || !sameButNews(c, old) {
			news.Status.Containers = append(news.Status.Containers, *c)
			continue
		}
		if n := countsOf(&c.Totals); n != countsOf(&old.Totals) {
			news.Counts[c.Cgroup] = n
		}
		if c.Why != old.Why {
			news.Whys[c.Cgroup] = c.Why
		}
	}
	for i := range before {
		news.Gone = append(news.Gone, before[i].Cgroup)
	}
	return news
}

// sameButNews says whether only counters and the reason of the last decision have changed.
func sameButNews(c, old *report.Container) bool {
	if (c.Totals.Events == nil) != (old.Totals.Events == nil) {
		return false
	}
	now := *c
	now.Why, now.Totals = old.Why, old.Totals
	now.Totals.Waited = c.Totals.Waited
	return now.Same(old)
}

// recorder collects the periods between two frames.
type recorder struct {
	from    Periods
	ended   map[string][]recent.Period
	first   int64 // lost before
	lost    int64
	missing string
}

func (r *recorder) start() {
	if r.from == nil {
		r.missing = "this agent records no periods"
	} else if err := r.from.Record(true); err != nil {
		r.missing = err.Error()
	}
	if r.missing == "" {
		r.ended = map[string][]recent.Period{}
		if _, lost, err := r.from.Take(); err == nil { // what is left of the last time
			r.first = lost
		}
	}
}

func (r *recorder) take() {
	if r.missing != "" {
		return
	}
	ended, lost, err := r.from.Take()
	if err != nil {
		r.missing, r.ended = err.Error(), nil
		return
	}
	r.lost = lost - r.first
	for path, list := range ended {
		r.ended[path] = append(r.ended[path], list...)
	}
}

// encoded are the periods since the last frame.
func (r *recorder) encoded() map[string][]byte {
	out := make(map[string][]byte, len(r.ended))
	for path, list := range r.ended {
		out[path] = recent.Append(nil, list)
	}
	clear(r.ended)
	return out
}

// maxEnded is how many periods wait for the agent's loop: half a minute of a hundred busy groups.
const maxEnded = 30_000

// bound drops what has ended where it is too much, and counts it as lost.
func (r *recorder) bound() {
	n := 0
	for _, list := range r.ended {
		n += len(list)
	}
	if n > maxEnded {
		r.first -= int64(n)
		clear(r.ended)
	}
}

func (r *recorder) stop() {
	if r.missing == "" {
		_ = r.from.Record(false) // it could be turned on
	}
}

// follow is the stream of frames, where fewer than most follow.
func (f *feed) follow(most int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		one := f.join(most)
		if one == nil {
			f.side.fail(w, busy("too many programs follow the agent"))
			return
		}
		defer f.leave(one)
		s := newStream(w, "application/x-ndjson")
		for {
			select {
			case <-r.Context().Done():
				return
			case <-f.done:
				return
			case data, ok := <-one.frames:
				if !ok || s.write(data) != nil {
					return
				}
			}
		}
	}
}

// stream is an answer that goes on. Each part of it has a time of its own.
type stream struct {
	w    http.ResponseWriter
	conn *http.ResponseController
}

func newStream(w http.ResponseWriter, contentType string) *stream {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	s := &stream{w: w, conn: http.NewResponseController(w)}
	_ = s.conn.SetReadDeadline(time.Time{}) // the request is read; what ends the connection is seen all the same
	return s
}

// partTime is how long a part may take to be written.
const partTime = 5 * time.Second

func (s *stream) write(data []byte) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(partTime))
	if _, err := s.w.Write(data); err != nil {
		return err
	}
	return s.conn.Flush()
}
