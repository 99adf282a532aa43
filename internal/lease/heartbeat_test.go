package lease

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLine(t *testing.T) {
	want := Beat{At: 123456789012345, By: Process{4194304, 987654321}}
	text := want.String()
	if got, ok := parse(text); !ok || got != want {
		t.Errorf("%q: %+v, %v", text, got, ok)
	}
	if len(text) != len(Beat{}.String()) ||
		len(text) != len(Beat{At: 1<<63 - 1, By: Process{1<<31 - 1, 1<<64 - 1}}.String()) {
		t.Error("lines of several lengths")
	}
	for _, bad := range []string{"", "\n", text[1:], text[:len(text)-1], text + "x",
		strings.Replace(text, " 1 ", " 2 ", 1), strings.Repeat("\x00", len(text))} {
		if got, ok := parse(bad); ok {
			t.Errorf("%q is taken for %+v", bad, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Beat{At: 1, By: Process{2, 3}}.String())
	f.Fuzz(func(t *testing.T, text string) {
		if b, ok := parse(text); ok && b.String() != text {
			t.Errorf("%q is taken for %q", text, b)
		}
	})
}

// TestHeart: a heartbeat is sent about once a second, whatever the number of turns, to each sink. One that hangs keeps
// neither the caller nor the other sink waiting, and one that fails is told of once.
func TestHeart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var well, bad []time.Duration
		var told []error
		begin := time.Now()
		stuck := make(chan struct{})
		h := NewHeart(func() time.Duration { return time.Since(begin) }, func(err error) { told = append(told, err) },
			func(at time.Duration) error { well = append(well, at); return nil },
			func(time.Duration) error { <-stuck; return nil },
			func(at time.Duration) error { bad = append(bad, at); return errors.New("no") })
		for range 1000 { // ten seconds
			before := time.Now()
			h.Beat(before)
			if time.Since(before) > 0 {
				t.Fatal("Beat waits")
			}
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		if len(well) < 9 || len(well) > 14 || well[0] != 0 || len(bad) != len(well) || len(told) != 1 {
			t.Errorf("heartbeats at %v and %v, errors %v", well, bad, told)
		}
		for i := 1; i < len(well); i++ {
			if d := well[i] - well[i-1]; d > time.Second {
				t.Errorf("none for %v", d)
			}
		}
		time.Sleep(time.Second)
		sent := len(well)
		for range 10 { // an idle agent, whose turns are a little less than a second apart
			h.Beat(time.Now())
			time.Sleep(900 * time.Millisecond)
		}
		synctest.Wait()
		if len(well) < sent+10 {
			t.Errorf("%d heartbeats in ten turns of an idle agent", len(well)-sent)
		}
		h.Close()
		close(stuck)
	})
}
