package main

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/loadline/noderisk"
)

// TestSizeBursts: the part of the bursts has to be searched for, else the measurement shows the easy case.
func TestSizeBursts(t *testing.T) {
	got, err := sizeBursts(250)
	if err != nil || got.Containers != 250 || got.CPU <= 0 || got.Share <= 0 || got.Share >= 1 {
		t.Errorf("%+v, %v", got, err)
	}
	s := sizing{Containers: 250, CPU: 300 * time.Millisecond}
	if text := s.text(0.0025); !strings.Contains(text, "300ms") || !strings.Contains(text, "0.50 %") ||
		!strings.Contains(text, "2.0 x the idle agent") {
		t.Error(text)
	}
	if text := s.text(0); strings.Contains(text, "idle") {
		t.Error(text)
	}
}

// What the agent does once a minute on a node of 250 containers with a load line.
func BenchmarkLoadLine250(b *testing.B) {
	list, capacity := demands(250)
	for b.Loop() {
		if _, err := noderisk.LoadLine(capacity, list, 99.9); err != nil {
			b.Fatal(err)
		}
	}
}
