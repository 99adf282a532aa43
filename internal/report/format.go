package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/printable"
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

// Called gives each command in a text, which stands in backticks, the flags that it needs to find the agent.
func Called(text, flags string) string {
	if flags == "" {
		return text
	}
	parts := strings.Split(text, "`")
	for i := 1; i < len(parts)-1; i++ {
		if strings.HasPrefix(parts[i], "plimsoll ") {
			parts[i] += " " + flags
		}
	}
	return strings.Join(parts, "`")
}

// CalledIn is Called in each of some texts, in their place.
func CalledIn(texts []string, flags string) {
	for i, text := range texts {
		texts[i] = Called(text, flags)
	}
}

// Reached is the status of an agent that commands find by these flags.
func (s Status) Reached(flags string) Status {
	s.Flags = flags
	CalledIn(s.Problems, flags)
	return s
}

// several is "1 file", or "2 files".
func several[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// clock spells an instant in the zone of the agent.
func clock(t time.Time) string { return t.Format(time.DateTime) }

func percent(ratio float64) string { return fmt.Sprintf("%.1f %%", 100*ratio) }

// Message is an error's; "" for none.
func Message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Printable is a name as it may be shown to a person: the creator of a control group chooses its name.
func Printable(s string) string { return printable.Text(s) }

// page collects text and is written in one go, so that there is one error to return.
type page struct{ bytes.Buffer }

// printf adds lines of text. An argument stays in its line, and does not control the terminal, whoever chose it.
func (p *page) printf(format string, args ...any) {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = Printable(text)
		}
	}
	text, ended := strings.CutSuffix(fmt.Sprintf(format, args...), "\n")
	if !ended {
		p.WriteString(text)
		return
	}
	for one := range strings.SplitSeq(text, "\n") {
		p.prose(one)
	}
}

func (p *page) writeTo(w io.Writer) error {
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("write text: %w", err)
	}
	return nil
}
