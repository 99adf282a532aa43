package web

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"plimsoll/internal/view"
)

// Onlooker is one program that sees of an agent what the page shows, and follows it for itself. Its calls end with
// their context; Periods is not to be called twice at a time.
type Onlooker struct {
	watch *watcher
	seen  int // the number of the last scene that View gave

	id    string // whose periods strip has
	strip strip
}

// Watch follows the agent behind a client from the first call on, until Close.
func Watch(agent *Client, node string, now func() time.Time, log *slog.Logger) *Onlooker {
	return &Onlooker{watch: newWatcher(agent, SiteOptions{Node: node, Now: now, Log: log})}
}

// Close ends it.
func (o *Onlooker) Close() { o.watch.end() }

// View is the next view that this has not given yet; the agent makes one each second.
func (o *Onlooker) View(ctx context.Context) (view.View, error) {
	for {
		_, next := o.watch.latest()
		s, err := o.watch.awaited(ctx)
		if err != nil {
			return view.View{}, err
		}
		if s.n != o.seen {
			o.seen = s.n
			return s.view, nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return view.View{}, &Error{Msg: "the agent gave no answer in time", Code: http.StatusServiceUnavailable,
				Advice: "see the agent's log"}
		}
	}
}

// Periods are those of a container that it has not given yet, of the last 15 minutes where it is another container than
// in the call before. They are false where nothing records the periods of this container.
func (o *Onlooker) Periods(id string) (view.Periods, bool) {
	s, _ := o.watch.latest()
	if s == nil || s.lost != "" {
		return view.Periods{}, true // the view says it
	}
	if s.view.Recording == nil {
		return view.Periods{}, false
	}
	at := slices.IndexFunc(s.view.Rows, func(r view.Row) bool { return r.ID == id })
	if at < 0 {
		return view.Periods{}, true // it is gone
	}
	if !o.watch.measured(id) {
		return view.Periods{}, false
	}
	if id != o.id {
		o.id, o.strip = id, strip{}
	}
	return o.strip.next(o.watch, s, s.view.Rows[at]), true
}
