// Package top is the page at a terminal: who stands still now, for how long, why, and what was done about it.
//
// # Problem
//
// A person on a node has a terminal of 80 by 24, perhaps over ssh, perhaps without colours and certainly without a
// mouse. Names on the screen were chosen by tenants. The agent may end while somebody looks.
//
// # Approach
//
// A Model is a value: keys and snapshots make the next one, and Render draws it as text of exactly so many lines.
// Nothing here reads a clock or a terminal; package screen does. Colour is laid over what the words already say. Every
// text of others passes printable.Text.
//
// # Known limits
//
// A letter that is two columns wide is cut as two; of the periods of a strip those are shown that fit on one line.
package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/view"
)

// Order is what the rows are sorted by.
type Order string

// The orders, each with the key that chooses it.
const (
	ByLost      Order = "lost"
	ByUse       Order = "use"
	ByThrottled Order = "throttled"
	ByResponse  Order = "response"
	ByName      Order = "name"
)

// Model is all that the screen depends on.
type Model struct {
	Width, Height int
	Colour        bool
	Sort          Order

	view    *view.View        // nil: no snapshot yet
	nodes   map[string]string // of rows, by ID; nil: there is one node
	lost    string            // why there is no agent; "" while there is one
	lostAt  time.Time
	lostNow time.Time // of the latest snapshot that failed
	filter  string
	typing  bool   // keys go into the filter
	at      string // ID of the row under the cursor
	open    string // ID of the container whose strip is shown; "": the table
	periods view.Periods
	unread  string // why the open container's periods cannot be read; "": they can
	help    bool
	Quit    bool
}

// New is the model before the first snapshot.
func New(width, height int) Model { return Model{Width: width, Height: height, Sort: ByLost} }

// Seen takes a snapshot. A cursor on the first row stays there, so that it is on the worst until somebody moves it;
// from any other row it goes with its container.
func (m Model) Seen(v view.View) Model {
	first := m.open == "" && m.index(m.rows()) == 0
	m.view, m.lost = &v, ""
	rows := m.rows()
	if first || m.index(rows) < 0 {
		m.at = ""
		if len(rows) > 0 {
			m.at = rows[0].ID
		}
	}
	return m
}

// On says on which node each row is, by its ID. nil: there is one node.
func (m Model) On(nodes map[string]string) Model {
	m.nodes = nodes
	return m
}

// Failed says that there was no snapshot. The last one stays on the screen, under the words.
func (m Model) Failed(why string, now time.Time) Model {
	if m.lost == "" {
		m.lostAt = now
	}
	m.lost, m.lostNow = why, now
	return m
}

// Open is the ID of the container whose periods are wanted; "" for none.
func (m Model) Open() string { return m.open }

// Recorded takes the periods of a container, all that are known.
func (m Model) Recorded(id string, p view.Periods) Model {
	if id == m.open {
		m.periods, m.unread = p, ""
	}
	return m
}

// Unread says why the periods of a container cannot be read; "": they can, and none has ended.
func (m Model) Unread(id, why string) Model {
	if id == m.open {
		m.unread = why
	}
	return m
}

// Resized takes the size of the terminal.
func (m Model) Resized(width, height int) Model {
	m.Width, m.Height = width, height
	return m
}

// Key takes a key, as bubbletea spells it.
func (m Model) Key(key string) Model {
	if m.typing {
		return m.typed(key)
	}
	if m.help {
		m.help = false
		return m
	}
	switch key {
	case "q", "ctrl+c":
		m.Quit = true
	case "esc", "backspace", "left", "h":
		if m.open == "" && key == "esc" {
			m.filter = ""
		}
		m.open = ""
	case "?":
		m.help = true
	case "/":
		m.typing, m.open = true, ""
	case "enter", "right":
		if m.open != m.at {
			m.open, m.periods, m.unread = m.at, view.Periods{}, ""
		}
	case "l":
		m.Sort = ByLost
	case "u":
		m.Sort = ByUse
	case "t":
		m.Sort = ByThrottled
	case "p":
		m.Sort = ByResponse
	case "n":
		m.Sort = ByName
	default:
		return m.moved(key)
	}
	return m
}

// typed edits the filter.
func (m Model) typed(key string) Model {
	switch key {
	case "ctrl+c":
		m.Quit = true
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		if runes := []rune(m.filter); len(runes) > 0 {
			m.filter = string(runes[:len(runes)-1])
		}
	case "space":
		m.filter += " "
	default:
		if runes := []rune(key); len(runes) == 1 {
			m.filter += key
		}
	}
	if rows := m.rows(); m.index(rows) < 0 && len(rows) > 0 {
		m.at = rows[0].ID
	}
	return m
}

// moved moves the cursor. While a strip is open it goes to the next container's.
func (m Model) moved(key string) Model {
	rows := m.rows()
	if len(rows) == 0 {
		return m
	}
	page := max(1, m.Height/2)
	to, last := max(0, m.index(rows)), len(rows)-1
	switch key {
	case "down", "j":
		to++
	case "up", "k":
		to--
	case "pgdown":
		to += page
	case "pgup":
		to -= page
	case "home", "g":
		to = 0
	case "end", "G":
		to = last
	}
	m.at = rows[min(max(to, 0), last)].ID
	if m.open != "" && m.open != m.at {
		m.open, m.periods, m.unread = m.at, view.Periods{}, ""
	}
	return m
}

// rows are those that the filter lets through, in order.
func (m Model) rows() []view.Row {
	if m.view == nil {
		return nil
	}
	var rows []view.Row
	part := strings.ToLower(m.filter)
	for _, r := range m.view.Rows {
		if strings.Contains(strings.ToLower(r.Name+" "+r.Pod+" "+r.ID), part) {
			rows = append(rows, r)
		}
	}
	weight := func(r view.Row) float64 {
		switch {
		case m.Sort == ByLost && r.Lost != nil:
			return float64(*r.Lost)
		case m.Sort == ByUse && r.Used != nil:
			return *r.Used
		case m.Sort == ByThrottled && r.Throttled != nil:
			return float64(*r.Throttled)
		case m.Sort == ByResponse && told(r.Requests):
			return float64(r.Requests.Response.P99)
		case m.Sort == ByName:
			return 0
		}
		return -1 // not measured: after what is 0
	}
	slices.SortStableFunc(rows, func(a, b view.Row) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return rows
}

func (m Model) index(rows []view.Row) int {
	return slices.IndexFunc(rows, func(r view.Row) bool { return r.ID == m.at })
}

// row is the open container's; nil: it is gone.
func (m Model) row() *view.Row {
	if m.view == nil {
		return nil
	}
	for i := range m.view.Rows {
		if m.view.Rows[i].ID == m.open {
			return &m.view.Rows[i]
		}
	}
	return nil
}
