package logqueue

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// blockedWriter takes nothing until it is opened.
type blockedWriter struct {
	open chan struct{}
	text bytes.Buffer
}

func (w *blockedWriter) Write(p []byte) (int, error) {
	<-w.open
	return w.text.Write(p)
}

// TestLogNeverWaits: while nobody reads, lines wait, and further lines are dropped. Once somebody reads, the log says
// how many.
func TestLogNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &blockedWriter{open: make(chan struct{})}
		queue := New()
		log := slog.New(queue.Over(slog.NewTextHandler(w, nil)))
		log.Info("first")
		synctest.Wait() // the first line is being written
		const over = 7
		for i := range capacity + over {
			log.WithGroup("of").With("n", i).Info("more") // would deadlock in this bubble, if it waited
		}
		if queue.Dropped() != over {
			t.Errorf("%d dropped, want %d", queue.Dropped(), over)
		}
		close(w.open)
		synctest.Wait()
		log.Info("last")
		queue.End()
		lines := strings.Split(strings.TrimSpace(w.text.String()), "\n")
		if len(lines) != 1+1+capacity+1 {
			t.Fatalf("%d lines, want the first, the count, %d and the last", len(lines), capacity)
		}
		for i, want := range map[int]string{0: "msg=first", 1: fmt.Sprintf("lines=%d", over), 2: "msg=more of.n=0",
			1 + capacity: fmt.Sprintf("msg=more of.n=%d", capacity-1), 2 + capacity: "msg=last"} {
			if !strings.HasSuffix(lines[i], want) {
				t.Errorf("line %d is %q, want it to end with %q", i, lines[i], want)
			}
		}
	})
}

// TestEndIsBounded: the end does not wait for ever for a reader, and a line that is logged after it does no harm.
func TestEndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &blockedWriter{open: make(chan struct{})}
		queue := New()
		log := slog.New(queue.Over(slog.NewTextHandler(w, nil)))
		log.Info("first")
		begun := time.Now()
		queue.End()
		if took := time.Since(begun); took != endPatience {
			t.Errorf("the end waited %v, want %v", took, endPatience)
		}
		log.Info("too late")
		close(w.open)
		<-queue.written
	})
}

// TestEndWritesAll: lines that wait at the end are written.
func TestEndWritesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &blockedWriter{open: make(chan struct{})}
		queue := New()
		log := slog.New(queue.Over(slog.NewTextHandler(w, nil)))
		for range 100 {
			log.Info("line")
		}
		go func() {
			time.Sleep(endPatience / 2)
			close(w.open)
		}()
		queue.End()
		if n := strings.Count(w.text.String(), "msg=line"); n != 100 {
			t.Errorf("%d lines of 100", n)
		}
	})
}
