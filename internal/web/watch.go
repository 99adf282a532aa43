package web

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/recent"
	"plimsoll/internal/report"
	"plimsoll/internal/view"
)

// watcher follows the agent while somebody looks at the page, and makes the scenes that all readers share.
//
// Problem: eight pages may be open, and each wants what has changed, each second. An agent that is lost has to be told
// of within three seconds, also where its process is there and does not answer.
//
// Approach: one connection to the agent, whatever the number of readers. Each frame makes one scene: the view, and what
// changed since the scene before, which is written as JSON once. Where no frame comes for a while, the scene is that
// the agent is lost. A minute after the last reader has gone, the connection is closed and what was kept is forgotten:
// while nobody looks, nothing is read, copied or recorded.
//
// Known limits: so a page begins with an empty strip, unless somebody looked a minute ago, or always is set.
type watcher struct {
	follow func(context.Context, func(frame)) error // until the agent is gone
	node   string
	always bool // follow also while nobody looks
	now    func() time.Time
	log    *slog.Logger
	fixed  *view.Snapshot // a recording in place of an agent

	mu      sync.Mutex
	readers []*liveReader // that stay, the oldest first
	asked   time.Time     // by the latest request that does not stay
	running bool
	stop    context.CancelFunc
	kept    kept
	scene   *scene
	next    chan struct{} // closed when there is another scene
	done    chan struct{} // closed when the site ends
}

// kept is what a watcher knows while it follows.
type kept struct {
	tracker    view.Tracker
	status     report.Status  // its containers change with each frame
	containers map[string]int // their places in it
	bursts     view.Bursts
	store      *recent.Store
	since      time.Time // frames have come without a gap
	lost       int64     // periods that had been lost before, while others followed
}

// scene is what is to be seen at one instant. It does not change. All who ask for its view, or its snapshot, share one
// rendering.
type scene struct {
	n      int       // counts up
	view   view.View // rows are read-only
	change []byte    // an event, for who has seen the scene before; nil: there was none
	lost   string    // why there is no agent; "": there is one
	since  time.Time // it is lost
	rendered
}

const (
	lostAfter  = 2200 * time.Millisecond // without a frame, which comes each second
	againAfter = time.Second
	firstScene = 3 * time.Second
	lingerFor  = time.Minute
	maxLive    = 8
)

func newWatcher(agent *Client, o SiteOptions) *watcher {
	w := &watcher{node: o.Node, always: o.Always, now: o.Now, log: o.Log, fixed: o.From, next: make(chan struct{}),
		done: make(chan struct{})}
	w.follow = func(ctx context.Context, each func(frame)) error { return agent.follow(ctx, each) }
	if w.fixed != nil {
		w.scene = &scene{n: 1, view: w.fixed.View}
	}
	return w
}

// end ends all that goes on.
func (w *watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.done:
	default:
		close(w.done)
	}
	if w.stop != nil {
		w.stop()
	}
}

// begin follows at once where it always does.
func (w *watcher) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.always {
		w.wake()
	}
}

// join takes a reader that stays; false where there are too many.
func (w *watcher) join(r *liveReader) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.readers) >= maxLive && !w.giveWay(r.client) {
		return false
	}
	w.readers = append(w.readers, r)
	w.wake()
	return true
}

// giveWay ends the oldest reader of a client that has most, for a client that has fewer by two or more; false where
// none has. The page of that reader asks again, and is refused while all are taken: nobody has two more than its client
// then. The lock is held.
func (w *watcher) giveWay(to string) bool {
	has := map[string]int{}
	for _, r := range w.readers {
		has[r.client]++
	}
	last := slices.MaxFunc(w.readers, func(a, b *liveReader) int { return has[a.client] - has[b.client] })
	if has[last.client] < has[to]+2 {
		return false
	}
	last.end()
	w.remove(last)
	return true
}

func (w *watcher) leave(r *liveReader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(r)
	w.asked = w.now() // it may come back
}

// remove takes a reader out that may be out already. The lock is held.
func (w *watcher) remove(r *liveReader) {
	w.readers = slices.DeleteFunc(w.readers, func(one *liveReader) bool { return one == r })
}

// latest is the present scene, nil where there is none yet, and a channel that is closed at the next one.
func (w *watcher) latest() (*scene, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scene, w.next
}

// awaited is the present scene for a request that does not stay. It waits for the first one.
func (w *watcher) awaited(ctx context.Context) (*scene, error) {
	ctx, cancel := context.WithTimeout(ctx, firstScene)
	defer cancel()
	w.mu.Lock()
	w.asked = w.now()
	w.wake()
	w.mu.Unlock()
	for {
		s, next := w.latest()
		switch {
		case s != nil && s.lost == "":
			return s, nil
		case s != nil:
			return nil, &Error{Msg: s.lost, Code: http.StatusServiceUnavailable, Advice: "see the agent's log"}
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, &Error{Msg: "the agent gave no answer in time", Code: http.StatusServiceUnavailable,
				Advice: "see the agent's log"}
		}
	}
}

// wake begins to follow. The lock is held.
func (w *watcher) wake() {
	if w.running || w.fixed != nil {
		return
	}
	w.running = true
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	go w.run(ctx)
}

// run follows the agent until nobody looks any more.
func (w *watcher) run(ctx context.Context) {
	w.mu.Lock()
	w.kept = kept{store: recent.New(0)}
	w.mu.Unlock()
	frames := make(chan frame)
	go w.connect(ctx, frames)
	silent := time.NewTimer(lostAfter)
	defer silent.Stop()
	tick := time.NewTicker(againAfter)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			w.forget()
			return
		case f := <-frames:
			w.take(f)
			silent.Reset(lostAfter)
		case <-silent.C:
			w.lose("the agent does not answer")
		case <-tick.C:
			if w.idle() {
				w.stop() // ctx is done then
			}
		}
	}
}

// connect passes frames on, and begins again after each end.
func (w *watcher) connect(ctx context.Context, frames chan<- frame) {
	for ctx.Err() == nil {
		err := w.follow(ctx, func(f frame) {
			select {
			case frames <- f:
			case <-ctx.Done():
			}
		})
		if ctx.Err() != nil {
			return
		}
		w.lose(err.Error())
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
		}
	}
}

func (w *watcher) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.always && len(w.readers) == 0 && w.now().Sub(w.asked) > lingerFor
}

// forget drops what was kept. Who has asked in the meantime makes it begin anew.
func (w *watcher) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept, w.scene, w.running = kept{}, nil, false
	select {
	case <-w.done:
		return
	default:
	}
	if w.always || len(w.readers) > 0 || w.now().Sub(w.asked) <= lingerFor {
		w.wake()
	}
}

// show makes a scene the present one. The lock is held.
func (w *watcher) show(s *scene) {
	w.scene = s
	close(w.next)
	w.next = make(chan struct{})
}

// lose is the scene without an agent.
func (w *watcher) lose(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &scene{lost: why, since: w.now()}
	if old := w.scene; old != nil {
		s.n, s.view = old.n+1, old.view
		if old.lost != "" {
			s.since = old.since
		}
	}
	w.kept.since = time.Time{}
	w.show(s)
}

// take makes the next scene.
func (w *watcher) take(f frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := &w.kept
	if k.containers == nil && !f.Whole {
		return
	}
	now := f.Status.Now
	periods := decoded(f, w.log)
	if now.Before(k.status.Now) {
		k.setBack(now, periods)
	}
	k.merge(f)
	k.bursts.Note(k.status, periods)
	for path, list := range periods {
		k.store.Add(path, list)
	}
	k.store.Expire(now)
	if k.since.IsZero() {
		k.since, k.lost = now, f.Lost
	}
	var recording *view.Recording
	if f.Missing == "" {
		recording = &view.Recording{Since: k.since, Lost: f.Lost - k.lost}
	}
	k.tracker.Node = w.node
	s := &scene{view: k.tracker.Add(k.status, recording, periods), n: 1}
	if old := w.scene; old != nil {
		s.n = old.n + 1
		if old.lost == "" {
			s.change = changeEvent(&old.view, &s.view)
		}
	}
	w.show(s)
}

// setBack begins anew where the clock was set back: the store keeps nothing that ended before its latest period, which
// may be hours ahead. So may be the first periods of this frame.
func (k *kept) setBack(now time.Time, periods map[string][]recent.Period) {
	k.bursts, k.store, k.since = view.Bursts{}, recent.New(0), time.Time{}
	for path, list := range periods {
		periods[path] = slices.DeleteFunc(list, func(p recent.Period) bool { return p.End > now.UnixMilli() })
	}
}

// merge lays a frame over what is known.
func (k *kept) merge(f frame) {
	list := k.status.Containers
	if f.Whole || k.containers == nil {
		k.containers, list = make(map[string]int, len(f.Status.Containers)), nil
	}
	for _, c := range f.Status.Containers {
		if at, known := k.containers[c.Cgroup]; known {
			list[at] = c
			continue
		}
		k.containers[c.Cgroup] = len(list)
		list = append(list, c)
	}
	for path, n := range f.Counts {
		if at, known := k.containers[path]; known {
			n.into(&list[at].Totals)
		}
	}
	for path, why := range f.Whys {
		if at, known := k.containers[path]; known {
			list[at].Why = why
		}
	}
	for _, path := range f.Gone { // the last one takes its place
		if at, known := k.containers[path]; known {
			last := len(list) - 1
			list[at] = list[last]
			k.containers[list[at].Cgroup] = at
			delete(k.containers, path)
			list = list[:last]
		}
	}
	k.status = f.Status
	k.status.Containers = list
}

// decoded are the periods of a frame.
func decoded(f frame, log *slog.Logger) map[string][]recent.Period {
	out := make(map[string][]recent.Period, len(f.Periods))
	for path, data := range f.Periods {
		list, err := recent.Decode(nil, data)
		if err != nil {
			log.Warn("the agent's periods of a container cannot be read", "cgroup", path, "error", err)
			continue
		}
		out[path] = list
	}
	return out
}
