package trace

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// throttledSuffix marks the column that has the throttled time of the container of that name.
const throttledSuffix = " throttled"

const csvAdvice = "a header with the containers' names, then a row for each period: shares of the machine, 1 for " +
	"all its CPUs"

// writeCSV writes the metadata as a comment, a header, and a row for each period.
func writeCSV(w io.Writer, t Trace) error {
	m, err := json.Marshal(describe(t, false))
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# %s\n", m)
	c := csv.NewWriter(b)
	var names []string
	var columns [][]float64
	for _, s := range t.Series {
		names, columns = append(names, s.Name), append(columns, s.Used)
		if s.Throttled != nil {
			names, columns = append(names, s.Name+throttledSuffix), append(columns, s.Throttled)
		}
	}
	if err := c.Write(names); err != nil {
		return err
	}
	row := make([]string, len(columns))
	for i := range t.Len() {
		for j, values := range columns {
			row[j] = strconv.FormatFloat(values[i], 'g', -1, 64)
		}
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	return errors.Join(c.Error(), b.Flush())
}

// readCSV reads what writeCSV writes, or a header and rows without metadata.
func readCSV(r io.Reader) (Trace, error) {
	last := &lastByte{Reader: r}
	b := bufio.NewReader(last)
	m, err := csvMeta(b)
	if err != nil {
		return Trace{}, err
	}
	c := csv.NewReader(b)
	c.ReuseRecord = true
	header, err := c.Read()
	if errors.Is(err, io.EOF) {
		return Trace{}, bad(csvAdvice, "it is empty")
	}
	if err != nil {
		return Trace{}, csvError(err)
	}
	names := make([]string, len(header))
	for i, name := range header {
		names[i] = strings.ToValidUTF8(name, "\uFFFD")
	}
	if _, err := strconv.ParseFloat(strings.TrimSpace(names[0]), 64); err == nil && m == nil {
		return Trace{}, bad(csvAdvice, "it has no header: the first row begins with the number %s", names[0])
	}
	columns, err := csvRows(c, len(names))
	if err != nil {
		return Trace{}, err
	}
	t, err := pair(names, columns)
	if err != nil || m == nil {
		return t, err
	}
	if last.b != '\n' {
		return Trace{}, cutShort()
	}
	return t, m.apply(&t)
}

// csvMeta reads the metadata if the first line has any.
func csvMeta(b *bufio.Reader) (*meta, error) {
	if start, err := b.Peek(3); err != nil || !bytes.Equal(start, []byte("# {")) {
		return nil, nil
	}
	line, err := b.ReadBytes('\n')
	if err != nil {
		return nil, cutShort()
	}
	m, err := parseMeta(line[2:])
	return &m, err
}

func csvRows(c *csv.Reader, n int) ([][]float64, error) {
	columns := make([][]float64, n)
	for rows := 0; ; rows++ {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return columns, nil
		}
		if err != nil {
			return nil, csvError(err)
		}
		if rows >= MaxSamples/n {
			return nil, tooMany(int64(rows), int64(n))
		}
		for i, field := range row {
			v, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
			if err != nil {
				line, _ := c.FieldPos(i)
				return nil, bad(csvAdvice, "line %d: %.40q is no number", line, field)
			}
			columns[i] = append(columns[i], v)
		}
	}
}

func csvError(err error) error {
	var p *csv.ParseError
	if errors.As(err, &p) {
		return bad(csvAdvice, "line %d: %v", p.Line, p.Err)
	}
	return fmt.Errorf("read CSV: %w", err)
}

// pair puts each column of throttled time to the container that it is of.
func pair(names []string, columns [][]float64) (Trace, error) {
	throttled := map[string][]float64{}
	var list []string
	var used [][]float64
	for i, name := range names {
		owner, ok := strings.CutSuffix(name, throttledSuffix)
		if ok && slices.Contains(names, owner) {
			throttled[owner] = columns[i]
			continue
		}
		list, used = append(list, name), append(used, columns[i])
	}
	if len(list) > maxColumns {
		return Trace{}, bad(csvAdvice, "it has %d containers", len(list))
	}
	t := bare(list, used)
	for i, s := range t.Series {
		t.Series[i].Throttled = throttled[s.Name]
	}
	return t, nil
}

// lastByte remembers the last byte read: a file of ours that does not end with a line's end was cut short.
type lastByte struct {
	io.Reader
	b byte
}

func (l *lastByte) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.b = p[n-1]
	}
	return n, err
}
