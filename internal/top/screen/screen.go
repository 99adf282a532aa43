// Package screen shows a top.Model on a terminal, with bubbletea.
package screen

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"plimsoll/internal/top"
	"plimsoll/internal/view"
)

// Source is where the figures come from.
type Source interface {
	// View gets a snapshot, and of several nodes on which of them each row is.
	View(ctx context.Context) (v view.View, nodes map[string]string, err error)
	// Periods gets the periods of a container that ended since the call before, of the same container.
	Periods(id string) (view.Periods, error)
}

const (
	// every is how often a snapshot is taken, and patience how long one may take: together less than the 3 s in which
	// the loss of an agent is shown.
	// In a cluster both are longer: each snapshot is a port that is forwarded.
	every    = time.Second
	patience = 1500 * time.Millisecond
	// beat is how often the periods of the open container are read. They last 100 ms unless somebody says otherwise.
	beat = 50 * time.Millisecond
	// mostPeriods are kept: more than any terminal is wide.
	mostPeriods = 1000
)

// Options say where a screen is shown.
type Options struct {
	In     io.Reader
	Out    io.Writer
	Colour bool
	Source Source
	Now    func() time.Time
	Every  time.Duration // between two snapshots; 0: a second
	Wait   time.Duration // for a snapshot; 0: with the second, less than 3 s, in which the loss of an agent is shown
}

// Run shows the screen until the person quits, or the context ends.
func Run(ctx context.Context, o Options) error {
	m := model{Options: o, ctx: ctx, top: top.New(80, 24)}
	m.top.Colour = o.Colour
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithFPS(20)).Run()
	if ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// model is the program of bubbletea.
type model struct {
	Options
	ctx   context.Context
	top   top.Model
	known view.Periods
	of    string // the container that these are of, also while its strip is closed
}

// seen is a snapshot, recorded are the periods that ended, and unread is why they cannot be read; "": none has ended.
type (
	seen struct {
		view  view.View
		nodes map[string]string
		err   error
		at    time.Time
	}
	recorded struct {
		id      string
		periods view.Periods
	}
	unread struct{ id, why string }
	look   struct{}
	tick   struct{}
)

func (m model) Init() tea.Cmd { return tea.Batch(m.look, beats()) }

// look takes a snapshot.
func (m model) look() tea.Msg {
	ctx, cancel := context.WithTimeout(m.ctx, cmp.Or(m.Wait, patience))
	defer cancel()
	v, nodes, err := m.Source.View(ctx)
	return seen{v, nodes, err, m.Now()}
}

func beats() tea.Cmd { return tea.Tick(beat, func(time.Time) tea.Msg { return tick{} }) }

func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var next tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.top = m.top.Resized(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		m.top = m.top.Key(msg.String())
		if len(m.known.End) > 0 { // the container may be open again: the source gives no period twice
			m.top = m.top.Recorded(m.of, m.known)
		}
	case seen:
		if msg.err != nil {
			m.top = m.top.Failed(msg.err.Error(), msg.at)
		} else {
			m.top = m.top.On(msg.nodes).Seen(msg.view)
		}
		next = tea.Tick(cmp.Or(m.Every, every), func(time.Time) tea.Msg { return look{} })
	case look:
		next = m.look
	case tick:
		next = tea.Batch(m.read(), beats())
	case recorded:
		if msg.id == m.of {
			m.known = top.Append(m.known, msg.periods, mostPeriods)
			m.top = m.top.Recorded(m.of, m.known)
		}
	case unread:
		m.top = m.top.Unread(msg.id, msg.why)
	}
	if m.top.Quit {
		return m, tea.Quit
	}
	if open := m.top.Open(); open != "" && open != m.of {
		m.of, m.known = open, view.Periods{}
	}
	return m, next
}

// read reads the periods of the open container.
func (m model) read() tea.Cmd {
	id := m.top.Open()
	if id == "" {
		return nil
	}
	return func() tea.Msg {
		p, err := m.Source.Periods(id)
		switch {
		case err != nil:
			return unread{id, err.Error()}
		case len(p.End) == 0:
			return unread{id, ""}
		}
		return recorded{id, p}
	}
}

func (m model) View() tea.View {
	v := tea.NewView(m.top.Render())
	v.AltScreen = true
	return v
}
