package trace

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// The format is that of numpy/lib/format.py: a magic string, a version, the length of a header, the header as a Python
// dictionary padded with blanks, the values. The library for it, codeberg.org/sbinet/npyio v0.14, is not for files of
// others: it panics on a header without a line end, allocates as many bytes as a header claims to have (up to 4 GiB),
// and does not read format 3.
const (
	npyMagic  = "\x93NUMPY"
	npyAlign  = 64
	npyAdvice = `save it with numpy.save(name, a.astype("<f8")), one row for each period, one column for each container`
)

// maxHeader bounds the dictionary: that of an array of numbers has some 60 bytes.
const maxHeader = 1 << 16

// maxColumns bounds the containers of a file.
const maxColumns = 1 << 16

// writeNPY writes the columns as an array of float64.
func writeNPY(w io.Writer, columns [][]float64) error {
	rows := len(columns[0])
	shape := fmt.Sprintf("(%d,)", rows)
	if len(columns) > 1 {
		shape = fmt.Sprintf("(%d, %d)", rows, len(columns))
	}
	dict := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': %s, }", shape)
	const before = len(npyMagic) + 2 + 2
	pad := npyAlign - (before+len(dict)+1)%npyAlign
	dict += strings.Repeat(" ", pad%npyAlign) + "\n"
	b := bufio.NewWriter(w)
	b.WriteString(npyMagic + "\x01\x00")
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(dict))))
	b.WriteString(dict)
	var word [8]byte
	for row := range rows {
		for _, values := range columns {
			binary.LittleEndian.PutUint64(word[:], math.Float64bits(values[row]))
			b.Write(word[:])
		}
	}
	return b.Flush() // a bufio.Writer keeps its first error
}

// readNPY reads an array of floats by column.
func readNPY(r io.Reader) ([][]float64, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	dict, err := npyHeader(b)
	if err != nil {
		return nil, err
	}
	a, err := parseNPY(dict)
	if err != nil {
		return nil, err
	}
	columns, err := a.values(b)
	if err != nil {
		return nil, err
	}
	if _, err := b.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, bad("is it one array, saved with numpy.save?", "there is more in it than %d x %d values", a.rows,
			a.columns)
	}
	return columns, nil
}

func npyHeader(b *bufio.Reader) (string, error) {
	head := make([]byte, len(npyMagic)+2)
	if _, err := io.ReadFull(b, head); err != nil || !bytes.HasPrefix(head, []byte(npyMagic)) {
		return "", bad(npyAdvice, "it is not a numpy array")
	}
	size := make([]byte, 2)
	if major := head[len(npyMagic)]; major == 2 || major == 3 {
		size = make([]byte, 4)
	} else if major != 1 {
		return "", bad(npyAdvice, "numpy format %d.%d is not known", major, head[len(npyMagic)+1])
	}
	if _, err := io.ReadFull(b, size); err != nil {
		return "", cutShort()
	}
	n := uint32(binary.LittleEndian.Uint16(size))
	if len(size) == 4 {
		n = binary.LittleEndian.Uint32(size)
	}
	if n > maxHeader {
		return "", bad(npyAdvice, "its header has %d bytes", n)
	}
	dict := make([]byte, n)
	if _, err := io.ReadFull(b, dict); err != nil {
		return "", cutShort()
	}
	return string(dict), nil
}

func cutShort() error { return bad("copy or record it again", "the file is cut short") }

// npyArray is what the header says.
type npyArray struct {
	order         binary.ByteOrder
	width         int // bytes of a value
	fortran       bool
	rows, columns int
}

var (
	npyType  = regexp.MustCompile(`'descr'\s*:\s*'([^']*)'`)
	npyOrder = regexp.MustCompile(`'fortran_order'\s*:\s*(True|False)`)
	npyShape = regexp.MustCompile(`'shape'\s*:\s*\(([0-9, ]*)\)`)
)

func parseNPY(dict string) (npyArray, error) {
	var a npyArray
	kind, order, shape := npyType.FindStringSubmatch(dict), npyOrder.FindStringSubmatch(
		dict), npyShape.FindStringSubmatch(dict)
	if kind == nil || order == nil || shape == nil {
		return a, bad(npyAdvice, "its header does not describe an array of numbers: %.80q", dict)
	}
	switch kind[1] {
	case "<f8", "<f4", "<f2":
		a.order = binary.LittleEndian
	case ">f8", ">f4", ">f2":
		a.order = binary.BigEndian
	default:
		return a, bad(npyAdvice, "its values are of the type %q, not floats", kind[1])
	}
	a.width, a.fortran = int(kind[1][2]-'0'), order[1] == "True"
	var err error
	a.rows, a.columns, err = parseShape(shape[1])
	return a, err
}

// parseShape reads (n,) and (n, k).
func parseShape(text string) (rows, columns int, err error) {
	var sizes []int64
	for _, field := range strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, " ", ""), ","), ",") {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, bad(npyAdvice, "its shape is (%s)", text)
		}
		sizes = append(sizes, n)
	}
	if len(sizes) == 1 {
		sizes = append(sizes, 1)
	}
	n, k := sizes[0], sizes[1]
	switch {
	case len(sizes) > 2 || k == 0:
		return 0, 0, bad(npyAdvice, "its shape is (%s)", text)
	case n > MaxSamples || k > MaxSamples || n*k > MaxSamples:
		return 0, 0, tooMany(n, k)
	case k > maxColumns:
		return 0, 0, acrossError(n, k)
	}
	return int(n), int(k), nil
}

// acrossError says that an array seems to lie across.
func acrossError(rows, columns int64) error {
	return bad("rows are periods, columns are containers: numpy.save(name, a.T)", "it has %d periods of %d containers",
		rows, columns)
}

// values reads as they come, so that a header that promises too much costs nothing.
func (a npyArray) values(r io.Reader) ([][]float64, error) {
	columns := make([][]float64, a.columns)
	buf := make([]byte, 1<<13*a.width)
	for at, total := 0, a.rows*a.columns; at < total; {
		n := min(total-at, len(buf)/a.width)
		if _, err := io.ReadFull(r, buf[:n*a.width]); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, cutShort()
		} else if err != nil {
			return nil, fmt.Errorf("read the values: %w", err)
		}
		for i := range n {
			column := at % a.columns
			if a.fortran {
				column = at / a.rows
			}
			columns[column] = append(columns[column], a.value(buf[i*a.width:]))
			at++
		}
	}
	return columns, nil
}

func (a npyArray) value(b []byte) float64 {
	switch a.width {
	case 2:
		return half(a.order.Uint16(b))
	case 4:
		return float64(math.Float32frombits(a.order.Uint32(b)))
	}
	return math.Float64frombits(a.order.Uint64(b))
}

// half is the value of a number of half precision (IEEE 754, binary16): a sign, 5 bits of exponent, 10 of fraction.
func half(bits uint16) float64 {
	exponent, fraction := int(bits>>10&0x1f), float64(bits&0x3ff)
	var v float64
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -24)
	case 0x1f:
		v = math.Inf(1)
		if fraction != 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	if bits>>15 == 1 {
		return -v
	}
	return v
}
