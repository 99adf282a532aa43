// Package printable makes text of unknown origin safe to show.
//
// # Problem
//
// Names of control groups, pods and containers, and the texts of annotations are chosen by people who need not be
// trusted. As they stand they may control a terminal (escape sequences), forge a second line (newlines), reorder a line
// (bidirectional marks) or fill a screen.
//
// # Approach
//
// In text for people each rune that Unicode does not call printable is replaced, and an excerpt has a bound. In JSON
// such a rune is written as its escape, which is the same text to a program.
//
// # Known limits
//
// Letters that look alike are printable, and so are letters of scripts that run from right to left.
package printable

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is a text in one line, without anything that does not print.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// Lines is Text for several lines with tabs.
func Lines(b []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, b)
}

// ellipsis ends what was cut.
const ellipsis = "..."

// Cut is a text of at most so many bytes, with an ellipsis within them where the rest is left out.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := max(most-len(ellipsis), 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}

// Excerpt is Text of at most so many bytes.
func Excerpt(s string, most int) string {
	return Cut(Text(Cut(s, most)), most) // a replaced byte may be three
}

// JSON passes JSON on with escapes in place of what does not print. Each Write must end between two runes, as that of
// an encoder does.
func JSON(w io.Writer) io.Writer { return escaper{w} }

type escaper struct{ io.Writer }

func (e escaper) Write(b []byte) (int, error) {
	if _, err := e.Writer.Write(escape(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// escape looks only at what is not plain ASCII: of that, an encoder has escaped what does not print.
func escape(b []byte) []byte {
	first := bytes.IndexFunc(b, func(r rune) bool { return r == utf8.RuneError || r >= 0x7f && !unicode.IsPrint(r) })
	if first < 0 {
		return b
	}
	out := append(make([]byte, 0, len(b)+64), b[:first]...)
	for rest := b[first:]; len(rest) > 0; {
		if rest[0] < 0x7f {
			out, rest = append(out, rest[0]), rest[1:]
			continue
		}
		r, size := utf8.DecodeRune(rest)
		switch high, low := utf16.EncodeRune(r); {
		case unicode.IsPrint(r) && (r != utf8.RuneError || size > 1):
			out = append(out, rest[:size]...)
		case high != unicode.ReplacementChar:
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		rest = rest[size:]
	}
	return out
}
