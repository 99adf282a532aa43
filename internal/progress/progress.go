// Package progress draws how far a command has come, on a terminal.
//
// # Problem
//
// A person who waits longer than two seconds asks whether anything happens. A program that reads the output must not
// find the answer in it.
//
// # Approach
//
// The bar is one line on standard error, drawn over itself, and taken away at the end. Where the total is known it
// shows the part that is done and the time left; else it shows the time that has passed.
//
// # Known limits
//
// The time left assumes that the rest goes as fast as what is done.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Patience is how long a command may take without a word.
const Patience = 2 * time.Second

// columns is the width of the bar.
const columns = 40

// Line is the bar of so many units of a total, after so much time. A total of 0 is not known.
func Line(what string, done, total int64, passed time.Duration) string {
	if total <= 0 {
		return fmt.Sprintf("%s: %s", what, passed.Round(time.Second))
	}
	done = min(max(done, 0), total)
	full := int(columns * done / total)
	line := fmt.Sprintf("%s %s%s %3d %%", what, strings.Repeat("█", full), strings.Repeat("░", columns-full),
		100*done/total)
	if left := remaining(done, total, passed); done > 0 && done < total {
		line += ", " + left.Round(time.Second).String() + " left"
	}
	return line
}

func remaining(done, total int64, passed time.Duration) time.Duration {
	return time.Duration(float64(passed) * float64(total-done) / float64(max(1, done)))
}

// Bar is drawn until Stop.
type Bar struct {
	w     io.Writer // nil: nothing is drawn
	what  string
	total int64
	known bool // that it takes longer than Patience
	begun time.Time
	stop  chan struct{}
	ended chan struct{}

	mu    sync.Mutex
	done  int64 // -1: goes by the clock
	shown bool
}

// Start draws a bar on w after Patience, and twice a second from then on. A nil writer draws nothing.
func Start(w io.Writer, what string, total int64) *Bar {
	return start(&Bar{w: w, what: what, total: total})
}

// For draws how much of a time has passed.
func For(w io.Writer, what string, length time.Duration) *Bar {
	return start(&Bar{w: w, what: what, total: int64(length), done: -1, known: length > Patience})
}

func start(b *Bar) *Bar {
	b.begun, b.stop, b.ended = time.Now(), make(chan struct{}), make(chan struct{})
	go b.run()
	return b
}

// Set says how much of the total is done.
func (b *Bar) Set(done int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = done
}

// Stop takes the bar away.
func (b *Bar) Stop() {
	close(b.stop)
	<-b.ended
}

const often = Patience / 4

func (b *Bar) run() {
	defer close(b.ended)
	wait := Patience
	if b.known {
		wait = often
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-b.stop:
			b.clear()
			return
		case <-timer.C:
			b.draw()
			timer.Reset(often)
		}
	}
}

// Say writes a line above the bar. It is written where there is no bar, too.
func (b *Bar) Say(w io.Writer, line string) {
	b.clear()
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintln(w, line)
}

func (b *Bar) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.shown = false
	}
}

func (b *Bar) draw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.w == nil {
		return
	}
	done, passed := b.done, time.Since(b.begun)
	if done < 0 {
		done = min(int64(passed), b.total)
	}
	fmt.Fprint(b.w, "\r"+Line(b.what, done, b.total, passed)+"\x1b[K")
	b.shown = true
}
