package main

import (
	"bytes"
	"strings"
	"testing"

	"plimsoll/internal/report"
	"plimsoll/lab/frame"
)

func TestResult(t *testing.T) {
	r := &result{Without: 12, With: 0.5, Against: "none", Policy: "cfsQuotaBurstOnly",
		Saved: report.Caused{Mean: 11, Low: 9, High: 13, Known: true}}
	var page bytes.Buffer
	r.WriteText(&page)
	for _, want := range []string{"difference  11.50 s", "9.00 to 13.00 s", "11.5      9 to 13"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in\n%s", want, &page)
		}
	}
	if aims := r.Aims(); !aims[0].Met() || !aims[1].Met() {
		t.Errorf("%+v", aims)
	}
	r.Saved.Low = 12
	if r.Aims()[0].Met() {
		t.Error("the interval does not cover the difference")
	}
	r.Saved.Known = false
	if r.Aims()[0].Met() {
		t.Error("there is no interval")
	}
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{{"-limit", "0"}, {"-percent", "60"}, {"-policy", "none"}, {"-seconds", "1"},
		{"-utilization", "95"}} {
		if err := frame.Parse("receipts", usual(), args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
	if err := frame.Parse("receipts", usual(), nil); err != nil {
		t.Error(err)
	}
}
