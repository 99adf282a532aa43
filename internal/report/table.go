package report

import (
	"strings"
	"unicode/utf8"
)

// Columns is the width that every text for people keeps: a terminal of 100 columns shows no line in two pieces.
//
// A name longer than its column loses its middle, where paths of containers have the least to tell. The last column of
// a table and all prose are broken at spaces. A word is never broken, nor is a
// command: they can be copied.
const Columns = 100

const (
	gap = 2
	// leastName and leastText are how far the columns of names, which are the first or the second,
	// and the last one may shrink.
	leastName = 24
	leastText = 30
)

// line is one row of a table, with sentences about it below.
type line struct {
	cells []string
	notes []string
}

// table adds rows with aligned columns; the first row is the head. A cell is one line.
func (p *page) table(rows [][]string) {
	lines := make([]line, len(rows))
	for i, row := range rows {
		lines[i].cells = row
	}
	p.lines(lines)
}

// lines adds a table whose rows may have notes.
func (p *page) lines(rows []line) {
	if len(rows) == 0 {
		return
	}
	for i := range rows {
		cells := make([]string, len(rows[i].cells))
		for k, cell := range rows[i].cells {
			cells[k] = Printable(cell)
		}
		rows[i].cells = cells
	}
	widths := fit(rows)
	for _, row := range rows {
		p.row(row.cells, widths)
		for _, note := range row.notes {
			p.prose("  " + Printable(note))
		}
	}
}

// fit is the width of each column.
func fit(rows []line) []int {
	var widths []int
	for _, row := range rows {
		for k, cell := range row.cells {
			if k == len(widths) {
				widths = append(widths, 0)
			}
			widths[k] = max(widths[k], width(cell))
		}
	}
	over := -Columns
	for k, w := range widths {
		over += w
		if k > 0 {
			over += gap
		}
	}
	last := len(widths) - 1
	for _, c := range []struct{ column, least int }{{last, leastText}, {1, leastName}, {0, leastName}} {
		if c.column > last {
			continue
		}
		if cut := min(over, widths[c.column]-c.least); cut > 0 {
			widths[c.column] -= cut
			over -= cut
		}
	}
	return widths
}

// row adds one row. What does not fit into the last column goes on below it.
func (p *page) row(cells []string, widths []int) {
	last := len(cells) - 1
	var b strings.Builder
	for k, cell := range cells[:last] {
		cell = Middle(cell, widths[k])
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", widths[k]-width(cell)+gap))
	}
	indent := width(b.String())
	if last == 0 {
		cells = []string{Middle(cells[0], widths[0])}
	}
	for i, part := range Wrap(cells[last], widths[last]) {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", indent))
		}
		p.WriteString(strings.TrimRight(b.String()+part, " ") + "\n")
		b.Reset()
	}
}

// prose adds a line of text, broken where it is too long. What follows is two columns further to the right.
func (p *page) prose(text string) {
	if width(text) <= Columns { // it may be a row of a table, whose spaces are to stay
		p.WriteString(text + "\n")
		return
	}
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	for i, part := range Wrap(text[len(lead):], Columns-len(lead)-gap) {
		if i > 0 {
			part = strings.Repeat(" ", gap) + part
		}
		p.WriteString(lead + part + "\n")
	}
}

// Wrap splits a text at spaces into parts of at most so many columns, where the words let it. A command in backquotes
// is one word.
func Wrap(text string, most int) []string {
	if width(text) <= most {
		return []string{text}
	}
	quoted := false
	words := strings.FieldsFunc(text, func(r rune) bool {
		quoted = quoted != (r == '`')
		return r == ' ' && !quoted
	})
	var parts []string
	at := ""
	for _, word := range words {
		switch {
		case at == "":
			at = word
		case width(at)+1+width(word) <= most:
			at += " " + word
		default:
			parts, at = append(parts, at), word
		}
	}
	return append(parts, at)
}

// Middle is a text without its middle, where it has more columns than that.
func Middle(text string, most int) string {
	if width(text) <= most {
		return text
	}
	runes := []rune(text)
	front := (most - 1) / 2
	return string(runes[:front]) + "…" + string(runes[len(runes)-(most-1-front):])
}

func width(s string) int { return utf8.RuneCountInString(s) }

// Table is a table by itself, for texts that other packages write.
func Table(rows [][]string) string {
	var p page
	p.table(rows)
	return p.String()
}

// Wrapped is a text whose long lines are broken. It is not made printable.
func Wrapped(text string) string {
	var p page
	for one := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		p.prose(one)
	}
	return p.String()
}
