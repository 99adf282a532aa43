package top

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"plimsoll/internal/report"
)

// wrap breaks a text into at most so many lines.
func wrap(text string, width, most int) []string {
	lines := report.Wrap(text, width)
	if len(lines) > most {
		lines[most-1] += " " + strings.Join(lines[most:], " ")
		lines = lines[:most]
	}
	for i := range lines {
		lines[i] = cut(lines[i], width)
	}
	return lines
}

// clock is a time in the zone of the terminal, with its date where that is another than now.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// cut is a text of at most so many columns.
func cut(text string, width int) string {
	if wide(text) <= width {
		return text
	}
	return string([]rune(text)[:max(0, width-1)]) + "…"
}

func pad(text string, width int) string {
	text = cut(text, width)
	return text + strings.Repeat(" ", width-wide(text))
}

// set puts a text into its column.
func (c column) set(text string) string {
	if c.width < 0 {
		return pad(text, -c.width)
	}
	text = cut(text, c.width)
	return strings.Repeat(" ", c.width-wide(text)) + text
}

func wide(text string) int { return utf8.RuneCountInString(text) }

func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}

func count(v *int64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

// length has three digits at most, or four and a unit.
func length(d *time.Duration) string {
	if d == nil {
		return "-"
	}
	if *d >= time.Minute {
		return fmt.Sprintf("%.0fs", d.Seconds())
	}
	unit := time.Nanosecond
	for d.Abs() >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit).String()
}

// perPeriod is a limit in CPUs.
func perPeriod(d *time.Duration, period time.Duration, none string) string {
	switch {
	case d == nil:
		return none
	case period <= 0:
		return length(d)
	}
	return fmt.Sprintf("%.2f", d.Seconds()/period.Seconds())
}
