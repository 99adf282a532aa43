package screen

import (
	"context"
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"plimsoll/internal/top"
	"plimsoll/internal/view"
)

// source has one container, and periods of it, or none.
type source struct {
	periods view.Periods
	err     error
}

func (s *source) View(context.Context) (view.View, map[string]string, error) {
	return view.View{Rows: []view.Row{{ID: "/a", Name: "a"}}}, nil, nil
}

func (s *source) Periods(string) (view.Periods, error) { return s.periods, s.err }

// one is a period in which a container was throttled.
func one() view.Periods {
	return view.Periods{Length: 1e8, End: []int64{1}, Used: []int32{1}, Quota: []int32{1}, Tokens: []int32{1},
		Throttles: []int32{1}, Lost: []int32{1}, Refills: []int32{1}}
}

// TestStripComesBack: a strip that was closed and is opened again has its periods, which the source gives once.
func TestStripComesBack(t *testing.T) {
	s := &source{periods: one()}
	v, _, _ := s.View(t.Context())
	var m tea.Model = model{Options: Options{Source: s}, top: top.New(80, 24).Seen(v)}
	for _, msg := range []tea.Msg{tea.KeyPressMsg{Code: tea.KeyEnter}, recorded{"/a", one()},
		tea.KeyPressMsg{Code: tea.KeyEscape}, tea.KeyPressMsg{Code: tea.KeyEnter}} {
		m, _ = m.Update(msg)
	}
	if text := m.(model).top.Render(); !strings.Contains(text, "x throttled") {
		t.Errorf("no period in\n%s", text)
	}
}

// TestPeriodsThatCannotBeRead: the strip says why it has none, and says so no longer once it can have some.
func TestPeriodsThatCannotBeRead(t *testing.T) {
	s := &source{}
	v, _, _ := s.View(t.Context())
	m := model{Options: Options{Source: s}, top: top.New(80, 24).Seen(v).Key("enter"), of: "/a"}
	for _, c := range []struct {
		periods view.Periods
		err     error
		want    string
	}{
		{view.Periods{}, nil, "no period yet"},
		{view.Periods{}, errors.New("ask the\x1b node"), "no periods: ask the\ufffd node"},
		{view.Periods{}, nil, "no period yet"},
		{one(), nil, "x throttled"},
		{view.Periods{}, errors.New("for a moment"), "x throttled"},
	} {
		s.periods, s.err = c.periods, c.err
		next, _ := m.Update(m.read()())
		m = next.(model)
		if text := m.top.Render(); !strings.Contains(text, c.want) {
			t.Errorf("%v: no %q in\n%s", c.err, c.want, text)
		}
	}
}
