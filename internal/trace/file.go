package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// metaSuffix is appended to the name of an array's file for that of its metadata.
const metaSuffix = ".json"

// Load reads and checks a recording.
func Load(name string) (Trace, error) {
	t, err := load(name)
	if err == nil {
		err = t.Check()
	}
	if err != nil {
		return Trace{}, fmt.Errorf("recording %s: %w", name, err)
	}
	return t, nil
}

func load(name string) (Trace, error) {
	kind, err := kindOf(name)
	if err != nil {
		return Trace{}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return Trace{}, errors.Unwrap(err) // without the name, which the caller says
	}
	defer f.Close()
	if kind == ".csv" {
		return readCSV(f)
	}
	columns, err := readNPY(f)
	if err != nil {
		return Trace{}, err
	}
	base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	names := []string{base}
	for i := 1; i < len(columns); i++ {
		names = append(names, fmt.Sprintf("%s-%d", base, i))
	}
	t := bare(names, columns)
	return t, beside(name+metaSuffix, &t)
}

// beside adds the metadata of an array, if there is any. An array of others with more columns than rows is refused: few
// record so briefly.
func beside(name string, t *Trace) error {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if rows, columns := t.Len(), len(t.Series); columns > rows && columns > 1 && rows > 0 {
			return acrossError(int64(rows), int64(columns))
		}
		return nil
	}
	if err != nil {
		return err
	}
	m, err := parseMeta(data)
	if err == nil {
		err = m.apply(t)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// kindOf is the lower-case ending of a name.
func kindOf(name string) (string, error) {
	kind := strings.ToLower(filepath.Ext(name))
	if kind != ".npy" && kind != ".csv" {
		return "", bad("name it .npy or .csv", "the ending %q is not known", kind)
	}
	return kind, nil
}

// Known says whether a name ends in a format of recordings.
func Known(name string) error {
	_, err := kindOf(name)
	return err
}

// Write writes a recording to a stream, as a .csv file.
func Write(w io.Writer, t Trace) error {
	if err := writeCSV(w, t); err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	return nil
}

// Save writes a recording in one piece: a reader finds the file as it was before, or whole. An array and its metadata
// are two files: both are on disk before either takes its place.
func Save(name string, t Trace) error {
	kind, err := kindOf(name)
	if err == nil && t.Len() == 0 {
		err = errors.New("nothing was recorded")
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", name, err)
	}
	if kind == ".csv" {
		return replace(file{name, func(w io.Writer) error { return writeCSV(w, t) }})
	}
	m, err := json.Marshal(describe(t, true))
	if err != nil {
		return fmt.Errorf("save %s: metadata: %w", name, err)
	}
	var columns [][]float64
	for _, s := range t.Series {
		columns = append(columns, s.Used)
	}
	return replace(file{name + metaSuffix, func(w io.Writer) error { _, err := w.Write(append(m, '\n')); return err }},
		file{name, func(w io.Writer) error { return writeNPY(w, columns) }})
}

// file is one to be written.
type file struct {
	name  string
	write func(io.Writer) error
}

// replace writes files beside the old ones, and puts them in their places when all are on disk: the metadata of one
// recording must not describe the array of another.
func replace(files ...file) error {
	var beside []string
	defer func() {
		for _, name := range beside {
			os.Remove(name) // it is gone where all went well
		}
	}()
	for _, f := range files {
		name, err := f.beside()
		if beside = append(beside, name); err != nil {
			return fmt.Errorf("save %s: %w", f.name, err)
		}
	}
	for i, f := range files {
		if err := os.Rename(beside[i], f.name); err != nil {
			return fmt.Errorf("save %s: %w", f.name, err)
		}
	}
	return nil
}

// beside writes the file to disk under a name of its own, which it returns.
func (f file) beside() (string, error) {
	out, err := os.CreateTemp(filepath.Dir(f.name), "."+filepath.Base(f.name)+"-*")
	if err != nil {
		return "", err
	}
	if err = f.write(out); err == nil {
		err = errors.Join(out.Chmod(0o644), out.Sync())
	}
	return out.Name(), errors.Join(err, out.Close())
}
