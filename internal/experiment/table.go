package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// Table is rows of cells.
type Table [][]string

// Row adds a row. A format is that of all its cells, with | between them.
func (t *Table) Row(format string, values ...any) {
	*t = append(*t, strings.Split(fmt.Sprintf(format, values...), "|"))
}

// Write writes the rows, aligned to the right.
func (t Table) Write(page *bytes.Buffer) { Columns(page, tabwriter.AlignRight, t) }

// Columns writes rows of cells, aligned. Flags are those of tabwriter, which AlignRight is one of.
func Columns(page *bytes.Buffer, flags uint, rows [][]string) {
	tw, end := tabwriter.NewWriter(page, 0, 0, 2, ' ', flags), "\n"
	if flags&tabwriter.AlignRight != 0 {
		end = "\t\n" // only a cell that ends is aligned
	}
	for _, cells := range rows {
		fmt.Fprint(tw, strings.Join(cells, "\t")+end)
	}
	tw.Flush() // into memory: cannot fail
}

// Lines writes each on a line of its own.
func Lines(page *bytes.Buffer, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(page, line)
	}
}

// Each does the same with each of a list, and joins the errors.
func Each[T any](list []T, do func(T) error) error {
	var errs []error
	for _, x := range list {
		errs = append(errs, do(x))
	}
	return errors.Join(errs...)
}

// MedianOf is the median of what each of a list has.
func MedianOf[T any](list []T, of func(T) float64) float64 {
	values := make([]float64, len(list))
	for i, x := range list {
		values[i] = of(x)
	}
	return Median(values)
}

// Ratio is a part of a whole; 0 where there is no whole.
func Ratio[T int64 | float64 | time.Duration](part, whole T) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Seconds are those of a flag.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Milliseconds is a duration in the unit of the tables.
func Milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }
