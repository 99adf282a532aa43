package web

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"plimsoll/internal/recent"
	"plimsoll/internal/view"
)

// detail is that of a row of a scene.
func (w *watcher) detail(s *scene, id string) (view.Detail, []recent.Period, error) {
	unknown := &Error{Msg: fmt.Sprintf("no container has the id %.200q", id), Code: http.StatusNotFound,
		Advice: "/api/v1/view lists them"}
	if w.fixed != nil {
		if d, ok := w.fixed.Detail(id); ok {
			return d, nil, nil
		}
		return view.Detail{}, nil, unknown
	}
	at := slices.IndexFunc(s.view.Rows, func(r view.Row) bool { return r.ID == id })
	if at < 0 {
		return view.Detail{}, nil, unknown
	}
	row := s.view.Rows[at]
	list := w.periodsOf(id, s.view.Now.Add(-recent.Keep))
	return view.NewDetail(row, s.view.Recording, w.notes(row)[0], list), list, nil
}

func (w *watcher) notes(rows ...view.Row) []view.Note {
	w.mu.Lock()
	defer w.mu.Unlock()
	return view.Notes(w.kept.status, rows)
}

// measured says whether the agent watches the periods of a container.
func (w *watcher) measured(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, known := w.kept.containers[id]
	return known && w.kept.status.Containers[at].Limit > 0 && w.kept.status.Containers[at].Totals.Events != nil
}

func (w *watcher) periodsOf(id string, after time.Time) []recent.Period {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept.store == nil {
		return nil
	}
	return w.kept.store.Periods(id, after)
}

// writeSnapshot writes all that is known of a scene. The periods of one container at a time are in memory.
func (w *watcher) writeSnapshot(to io.Writer, s *scene) error {
	if w.fixed != nil {
		return w.fixed.WriteJSON(to)
	}
	notes := w.notes(s.view.Rows...)
	return view.Snapshot{Made: s.view.Now, View: s.view}.WriteEach(to, func(yield func(view.Kept) bool) {
		for i, row := range s.view.Rows {
			k := view.Kept{ID: row.ID, Note: notes[i]}
			if list := w.periodsOf(row.ID, s.view.Now.Add(-recent.Keep)); len(list) > 0 {
				k.Periods = recent.Append(nil, list)
			}
			if !yield(k) {
				return
			}
		}
	})
}
