// Package logbook gives tests a log that can be read while processes or goroutines write it.
package logbook

import (
	"strings"
	"sync"
)

// Book is what was written; the zero one is empty.
type Book struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *Book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *Book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
