package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/fulldisk"
)

func counts(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(i) / 100
	}
	return list
}

func recording() Trace {
	return Trace{Period: 50 * time.Millisecond, CPUs: 2, Started: time.Date(2026, 11, 21, 12, 0, 0, 5, time.UTC),
		Late: 2, Series: []Series{
			{Name: "/lab/a,b", Limit: 0.5, Used: []float64{0.1, 0.25, 1e-9}, Throttled: []float64{0, 0.125, 1.0 / 3}},
			{Name: "default/web/nginx", Limit: math.Inf(1), Used: []float64{0, 0.5, 1}},
		}}
}

func TestSaveAndLoad(t *testing.T) {
	for _, want := range []Trace{recording(), {Period: 100 * time.Millisecond,
		Series: []Series{{Name: "one", Limit: math.Inf(1), Used: counts(5)}}},
		{Period: 100 * time.Millisecond, Series: []Series{ // more containers than periods: it was stopped soon
			{Name: "a", Limit: math.Inf(1), Used: counts(2)}, {Name: "b", Limit: math.Inf(1), Used: counts(2)},
			{Name: "c", Limit: math.Inf(1), Used: counts(2)}}}} {
		for _, kind := range []string{"npy", "csv", "CSV"} {
			name := filepath.Join(t.TempDir(), "x."+kind)
			if err := Save(name, want); err != nil {
				t.Fatal(err)
			}
			got, err := Load(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", kind, diff)
			}
		}
	}
}

// TestSaveNamesThatAreNoText: the name of a control group may be any bytes.
func TestSaveNamesThatAreNoText(t *testing.T) {
	for _, kind := range []string{"npy", "csv"} {
		name := filepath.Join(t.TempDir(), "x."+kind)
		if err := Save(name, Trace{Period: 100 * time.Millisecond, Series: []Series{{Name: "/a\xff",
			Limit: math.Inf(1), Used: counts(5), Throttled: counts(5)}}}); err != nil {
			t.Fatal(err)
		}
		got, err := Load(name)
		if err != nil || len(got.Series) != 1 || got.Series[0].Name != "/a\uFFFD" || len(got.Series[0].Throttled) != 5 {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
}

// TestNumpy reads what numpy wrote, and writes what numpy would.
func TestNumpy(t *testing.T) {
	whole := counts(12)
	// as numpy reads them
	halves := [][]float64{{0, 0x1.47cp-5, 0x1.47cp-4, 0x1.47cp-7, 1.5, 0x1p-24},
		{0x1.47cp-6, 0x1.eb8p-5, 0x1.998p-4, 0x1.eb8p-6, 65504, 0.5}}
	for file, want := range map[string][][]float64{
		"numpy-f2":      halves,
		"numpy-f2-big":  halves,
		"numpy-f8":      {whole},
		"numpy-fortran": {{0, .02, .04, .06, .08, .1}, {.01, .03, .05, .07, .09, .11}},
	} {
		got, err := Load("testdata/" + file + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Series) != len(want) || got.Period != 100*time.Millisecond || got.Series[0].Limited() {
			t.Fatalf("%s: %+v", file, got)
		}
		for i, s := range got.Series {
			if diff := cmp.Diff(want[i], s.Used); diff != "" {
				t.Errorf("%s: %s", file, diff)
			}
		}
	}
	got, err := Load("testdata/numpy-f4-big.npy")
	if err != nil || math.Abs(got.Series[0].Used[7]-0.07) > 1e-8 {
		t.Errorf("%v, %v", got, err)
	}
	var ours bytes.Buffer
	theirs, err := os.ReadFile("testdata/numpy-f8.npy")
	if err := errors.Join(err, writeNPY(&ours, [][]float64{whole})); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(theirs, ours.Bytes()); diff != "" {
		t.Errorf("(-numpy +ours) %s", diff)
	}
}

// TestHalf: what is no number is none, and is refused later.
func TestHalf(t *testing.T) {
	for bits, want := range map[uint16]float64{0x0000: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0001: 0x1p-24,
		0x03ff: 1023 * 0x1p-24, 0x0400: 0x1p-14,
		0x7c00: math.Inf(1), 0xfc00: math.Inf(-1)} {
		if got := half(bits); got != want {
			t.Errorf("%#04x: %v, want %v", bits, got, want)
		}
	}
	if !math.IsNaN(half(0x7e00)) {
		t.Error("a number that is none is one")
	}
}

// npyFile is a file with this header and values of zero.
func npyFile(dict string, values int) []byte {
	b := append([]byte(npyMagic+"\x01\x00"), byte(len(dict)), byte(len(dict)>>8))
	return append(append(b, dict...), make([]byte, 8*values)...)
}

func dict(shape string) string {
	return "{'descr': '<f8', 'fortran_order': False, 'shape': (" + shape + "), }"
}

func TestBadFiles(t *testing.T) {
	good := new(bytes.Buffer)
	if err := writeNPY(good, [][]float64{counts(9)}); err != nil {
		t.Fatal(err)
	}
	ours := new(bytes.Buffer)
	if err := writeCSV(ours, recording()); err != nil {
		t.Fatal(err)
	}
	file := func(name string) []byte {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"x.npy", nil, "not a numpy array"},
		{"x.npy", []byte("\x93NUMPY\x07\x00"), "format 7.0"},
		{"x.npy", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), "header has 4294967295 bytes"},
		{"x.npy", []byte("\x93NUMPY\x01\x00\x20"), "cut short"},
		{"x.npy", good.Bytes()[:40], "cut short"},
		{"x.npy", good.Bytes()[:good.Len()-3], "cut short"},
		{"x.npy", append(bytes.Clone(good.Bytes()), 0), "more in it than 9 x 1"},
		{"x.npy", npyFile("{}", 0), "does not describe"},
		{"x.npy", npyFile(dict("0,"), 0), "empty"},
		{"x.npy", npyFile(dict("1,"), 1), "one sample"},
		{"x.npy", npyFile(dict("2147483649,"), 1), "at most 2^31"},
		{"x.npy", npyFile(dict("65537, 65536"), 1), "at most 2^31"},
		{"x.npy", npyFile(dict("9223372036854775807, 9223372036854775807"), 1), "at most 2^31"},
		{"x.npy", npyFile(dict("99999999999999999999,"), 1), "shape is"},
		{"x.npy", npyFile(dict("2147483647,"), 1), "cut short"}, // and without 16 GB of memory
		{"x.npy", npyFile(dict("5, 0"), 0), "shape is"},
		{"x.npy", file("numpy-int.npy"), `type "<i8", not floats`},
		{"x.npy", file("numpy-3d.npy"), "shape is (2, 2, 2)"},
		{"x.npy", file("numpy-row.npy"), "1 periods of 12 containers"},
		{"x.npy", file("numpy-scalar.npy"), "shape is ()"},
		{"x.npy", file("numpy-record.npy"), "does not describe"},
		{"x.csv", nil, "empty"},
		{"x.csv", []byte("web\n"), "empty"},
		{"x.csv", []byte("web\n0.5\n"), "one sample"},
		{"x.csv", []byte("0.5\n0.5\n0.5\n"), "no header"},
		{"x.csv", []byte("a,b\n0.5,1\n0.5\n"), "line 3: wrong number of fields"},
		{"x.csv", []byte("a\n0.5\nx\n"), `line 3: "x" is no number`},
		{"x.csv", []byte("a,a\n1,1\n1,1\n"), `two containers are called "a"`},
		{"x.csv", []byte("a,\n1,1\n1,1\n"), `a container is called ""`},
		{"x.csv", []byte("b throttled\n1\n1\n"), `a container is called "b throttled"`},
		{"x.csv", []byte("a\n0.5\nNaN\n"), `period 1 of "a" is NaN`},
		{"x.csv", []byte("a\n-0.5\n1\n"), `period 0 of "a" is -0.5`},
		{"x.csv", []byte("a\n+Inf\n1\n"), `period 0 of "a" is +Inf`},
		{"x.csv", []byte("a,a throttled\n1,1\n1,-1\n"), `period 1 of "a" is -1`},
		{"x.csv", ours.Bytes()[:ours.Len()-1], "cut short"},
		{"x.csv", ours.Bytes()[:bytes.LastIndexByte(ours.Bytes()[:ours.Len()-1], '\n')+1],
			"metadata is of 3 periods of 2 containers, the data of 2 of 2"},
		{"x.csv", []byte("# {\"schema\": \"other/v1\"}\na\n1\n2\n"), `schema "other/v1"`},
		{"x.csv", []byte("# {}"), "cut short"},
		{"x.csv", []byte("# {x\na\n1\n2\n"), "metadata: invalid character"},
		{"x.txt", nil, `".txt" is not known`},
	} {
		name := filepath.Join(t.TempDir(), tt.name)
		if err := os.WriteFile(name, tt.data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(name)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%.60q: error %v, want %q", tt.data, err, tt.want)
		}
	}
	if _, err := Load("testdata/none.npy"); !errors.Is(err, os.ErrNotExist) ||
		strings.Count(err.Error(), "none.npy") != 1 {
		t.Errorf("error %v", err)
	}
}

// TestHints: what a person may have done wrong comes with advice.
func TestHints(t *testing.T) {
	_, err := Load("testdata/numpy-int.npy")
	var h interface{ Hint() string }
	if !errors.As(err, &h) || !strings.Contains(h.Hint(), "astype") {
		t.Errorf("no hint: %v", err)
	}
}

// TestStrangeMetadata: an array whose metadata is of another array, or broken, is not used without it.
func TestStrangeMetadata(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.npy")
	if err := Save(name, recording()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"schema":"plimsoll.trace/v1","samples":4,"containers":[{},{}]}`, "{",
		`{"schema":"plimsoll.trace/v1","period_ns":100000000,"samples":3,"containers":[{"limit_cpus":-1},{}]}`,
		`{"schema":"plimsoll.trace/v1","samples":3,"containers":[{},{}]}`, `{"schema":"plimsoll.trace/v1","period_ns":100000000,"samples":3,"containers":[{"throttled":[1]},{}]}`} {
		if err := os.WriteFile(name+metaSuffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Load(name); err == nil {
			t.Errorf("%s: taken as %+v", text, got)
		}
	}
}

// TestSaveLeavesNothingBehind: a failed save leaves the old file and no other.
func TestSaveLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x.csv")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := replace(file{name, func(io.Writer) error { return errors.New("disk full") }})
	old, _ := os.ReadFile(name)
	files, _ := os.ReadDir(dir)
	if err == nil || !strings.Contains(err.Error(), "disk full") || string(old) != "old" || len(files) != 1 {
		t.Errorf("error %v, file %q, %d files", err, old, len(files))
	}
	for _, bad := range []string{"x.txt", "none/x.npy", "x.npy"} {
		empty := recording()
		if bad == "x.npy" {
			empty = Trace{}
		}
		if err := Save(filepath.Join(dir, bad), empty); err == nil {
			t.Errorf("%s: saved", bad)
		}
	}
}

// TestSaveOnAFullDisk: where the array does not fit, the recording that was there is whole, with its own metadata.
func TestSaveOnAFullDisk(t *testing.T) {
	if fulldisk.Elsewhere(t) {
		return
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "x.npy")
	of := func(container string) Trace {
		return Trace{Period: 100 * time.Millisecond, Series: []Series{{Name: container, Limit: 1, Used: counts(1000)}}}
	}
	if err := Save(name, of("old")); err != nil {
		t.Fatal(err)
	}
	free := fulldisk.Fill(t, 4096)
	err := Save(name, of("new"))
	free()
	got, loading := Load(name)
	if diff := cmp.Diff(of("old"), got); err == nil || loading != nil || diff != "" {
		t.Errorf("%v, %v (-want +got):\n%s", err, loading, diff)
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("%d files, want the two of before", len(files))
	}
}

func TestWarnings(t *testing.T) {
	few := Trace{Period: 1, Late: 3, Series: []Series{{Name: "a", Used: make([]float64, 10)},
		{Name: "b", Used: []float64{6.5}}}}
	got := few.Warnings()
	if len(got) != 4 || !strings.Contains(got[0], "10 periods are few") || !strings.Contains(got[1], "3 of 10") ||
		!strings.Contains(got[2], `"a" did not run`) || !strings.Contains(got[3], `"b" used up to 650 %`) {
		t.Errorf("%q", got)
	}
	above := Trace{Series: []Series{{Name: "a", Limit: math.Inf(1), Used: bytesOf(Few), Throttled: bytesOf(Few)}}}
	if got := above.Warnings(); len(got) != 1 || !strings.Contains(got[0],
		`"a" stood throttled in 100.0 % of the periods by a limit that is not in the recording`) {
		t.Errorf("%q", got)
	}
	if got := (Trace{Series: []Series{{Used: bytesOf(Few)}}}).Warnings(); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func bytesOf(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = 0.5
	}
	return list
}

func TestFigures(t *testing.T) {
	s := Series{Used: []float64{0.2, 0.4, 0.6, 0.8}, Throttled: []float64{0, 1, 0, 0}}
	want := Figures{Mean: 0.5, Variance: 0.05, P95: 0.8, P99: 0.8, Max: 0.8, Throttled: 0.25}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	if diff := cmp.Diff(want, s.Figures(), near); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{0.4}, s.Coarse(3), near); diff != "" {
		t.Error(diff)
	}
	if got := (Series{}).Figures(); got != (Figures{}) {
		t.Errorf("%+v", got)
	}
	if p := quantile(counts(101), 0.95); p != 0.95 {
		t.Errorf("P95 %g", p)
	}
}

func FuzzReadNPY(f *testing.F) {
	for _, name := range []string{"f8", "f4-big", "f2", "f2-big", "fortran", "int", "3d", "row", "scalar", "record"} {
		data, err := os.ReadFile("testdata/numpy-" + name + ".npy")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(npyFile(dict("2147483647,"), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		columns, err := readNPY(bytes.NewReader(data))
		if (err == nil) == (columns == nil) {
			t.Fatalf("%d columns and error %v", len(columns), err)
		}
		if err != nil || len(columns[0]) == 0 {
			return
		}
		var again bytes.Buffer
		if err := writeNPY(&again, columns); err != nil {
			t.Fatal(err)
		}
		twice, err := readNPY(&again)
		if err != nil || fmt.Sprint(twice) != fmt.Sprint(columns) {
			t.Fatalf("%v became %v, %v", columns, twice, err)
		}
	})
}

func FuzzReadCSV(f *testing.F) {
	var b bytes.Buffer
	if err := writeCSV(&b, recording()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("a,a throttled,b\n1,0,2\n0x1p-2,0,1e-3\n"))
	f.Add([]byte("a throttled,a throttled throttled\n1,2\n1,2\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readCSV(bytes.NewReader(data))
		if err != nil || got.Check() != nil {
			return
		}
		var again bytes.Buffer
		if err := writeCSV(&again, got); err != nil {
			t.Fatal(err)
		}
		twice, err := readCSV(&again)
		if err != nil {
			t.Fatalf("%v of\n%s", err, again.Bytes())
		}
		if diff := cmp.Diff(got, twice); diff != "" {
			t.Fatal(diff)
		}
	})
}
