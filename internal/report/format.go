package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"plimsoll/internal/cpu"
)

// amount spells a quota or burst.
func amount(d time.Duration) string {
	if d == cpu.Unlimited {
		return "max"
	}
	return d.String()
}

// span spells a duration with about three digits, which is what a person reads.
func span(d time.Duration) string {
	unit := time.Nanosecond
	for unit < time.Second && d.Abs() >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit).String()
}

// clock spells an instant in the zone of the agent.
func clock(t time.Time) string { return t.Format(time.DateTime) }

func percent(ratio float64) string { return fmt.Sprintf("%.1f %%", 100*ratio) }

// printable keeps a name from controlling the terminal: anyone who may create a cgroup chooses its name.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// Printable is a name as it may be shown to a person.
func Printable(s string) string { return printable(s) }

// page collects text and is written in one go, so that there is one error to return.
type page struct{ bytes.Buffer }

func (p *page) printf(format string, args ...any) { fmt.Fprintf(&p.Buffer, format, args...) }

// table adds rows with aligned columns; the first row is the head.
func (p *page) table(rows [][]string) {
	tw := tabwriter.NewWriter(&p.Buffer, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	tw.Flush() // into memory: cannot fail
}

func (p *page) writeTo(w io.Writer) error {
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("write text: %w", err)
	}
	return nil
}
