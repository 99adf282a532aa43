package figure

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// SVG writes the picture as SVG 1.1.
func (c *Canvas) SVG(w io.Writer) error {
	b := &svgWriter{}
	b.printf(
		`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img" font-family="Helvetica, Arial, sans-serif">`+"\n",
		digits(c.Width), digits(c.Height), digits(c.Width), digits(c.Height))
	b.printf("<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"%s\"/>\n", escaped(c.Title), white)
	for _, s := range c.shapes {
		s.svg(b)
	}
	b.printf("</svg>\n")
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write SVG: %w", err)
	}
	return nil
}

type svgWriter struct{ bytes.Buffer }

func (w *svgWriter) printf(format string, args ...any) { fmt.Fprintf(&w.Buffer, format, args...) }

func (l line) svg(w *svgWriter) {
	dash := ""
	if len(l.stroke.Dash) > 0 {
		var parts []string
		for _, d := range l.stroke.Dash {
			parts = append(parts, digits(d))
		}
		dash = fmt.Sprintf(` stroke-dasharray="%s"`, strings.Join(parts, " "))
	}
	w.printf(`<polyline points="%s" fill="none" stroke="%s" stroke-width="%s" stroke-linejoin="round"%s/>`+"\n",
		corners(l.points), l.stroke.Ink, digits(l.stroke.Width), dash)
}

func (a area) svg(w *svgWriter) {
	opacity := ""
	if a.opacity < 1 {
		opacity = fmt.Sprintf(` fill-opacity="%s"`, digits(a.opacity))
	}
	w.printf(`<polygon points="%s" fill="%s"%s/>`+"\n", corners(a.points), a.ink, opacity)
}

func (t text) svg(w *svgWriter) {
	var more string
	if t.font.Bold {
		more += ` font-weight="bold"`
	}
	if t.font.Up {
		more += fmt.Sprintf(` transform="rotate(-90 %s %s)"`, digits(t.at.X), digits(t.at.Y))
	}
	w.printf(`<text x="%s" y="%s" font-size="%s" fill="%s" text-anchor="%s"%s>%s</text>`+"\n",
		digits(t.at.X), digits(t.at.Y), digits(t.font.Size), t.font.Ink, t.font.Anchor, more, escaped(t.text))
}

// escaped is a text within XML, which has no room for most control characters, however they are written.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder refuses nothing
	return b.String()
}

func corners(points []Point) string {
	parts := make([]string, len(points))
	for i, p := range points {
		parts[i] = digits(p.X) + "," + digits(p.Y)
	}
	return strings.Join(parts, " ")
}

// digits spells a length to a hundredth of a pixel: no platform's last bit shows.
func digits(x float64) string {
	s := strings.TrimRight(strconv.FormatFloat(x, 'f', 2, 64), "0")
	if s = strings.TrimSuffix(s, "."); s == "-0" {
		return "0"
	}
	return s
}
