package view

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/recent"
)

// SnapshotSchema names the format of a snapshot: one file with a view and the periods that led to it, to be looked at
// elsewhere. It is JSON, compressed by gzip.
const SnapshotSchema = "plimsoll.snapshot/v1"

// Snapshot is such a file.
type Snapshot struct {
	Schema     string    `json:"schema"`
	Made       time.Time `json:"made"`       // when it was made
	View       View      `json:"view"`       // what the page showed
	Containers []Kept    `json:"containers"` // of each row
}

// Kept is what a snapshot keeps of a container.
type Kept struct {
	ID string `json:"id"` // the path of the control group
	Note
	Periods []byte `json:"periods,omitempty"` // its periods, as package recent encodes them
}

// Bounds of a snapshot, beyond which it is not one of ours.
const (
	MaxSnapshotBytes = 512 << 20 // without compression
	maxSnapshotRows  = 50_000
)

// FileError says why a file is no snapshot, and what can be done about it.
type FileError struct {
	Msg    string
	Advice string
}

func (e *FileError) Error() string { return e.Msg }

// Hint is advice for the person who named the file.
func (e *FileError) Hint() string { return e.Advice }

// WriteJSON writes a snapshot without the compression that the file has.
func (s Snapshot) WriteJSON(w io.Writer) error { return s.WriteEach(w, slices.Values(s.Containers)) }

// WriteEach writes a snapshot of these containers, one after the other: as a whole, its text would be in memory several
// times.
func (s Snapshot) WriteEach(w io.Writer, containers iter.Seq[Kept]) error {
	s.Schema, s.Containers = SnapshotSchema, []Kept{}
	head, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write a snapshot: %w", err)
	}
	_, err = w.Write(bytes.TrimSuffix(head, []byte("]}")))
	separator, each := "", json.NewEncoder(w)
	for k := range containers {
		_, err2 := io.WriteString(w, separator)
		if err = errors.Join(err, err2, each.Encode(k)); err != nil {
			break
		}
		separator = ","
	}
	if _, err2 := io.WriteString(w, "]}\n"); err != nil || err2 != nil {
		return fmt.Errorf("write a snapshot: %w", errors.Join(err, err2))
	}
	return nil
}

// ReadSnapshot reads the file. most bounds its size without compression.
func ReadSnapshot(r io.Reader, most int64) (Snapshot, error) {
	const made = "`plimsoll snapshot -o FILE` makes one"
	zip, err := gzip.NewReader(r)
	if err != nil {
		return Snapshot{}, &FileError{"not a snapshot: it is not compressed by gzip", made}
	}
	plain := &bounded{from: zip, left: most}
	var s Snapshot
	err = json.NewDecoder(plain).Decode(&s)
	var tooLong *FileError
	switch {
	case errors.As(err, &tooLong):
		return Snapshot{}, tooLong
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrChecksum):
		return Snapshot{}, &FileError{"the snapshot is not complete", "copy or make it again"}
	case err != nil:
		return Snapshot{}, &FileError{fmt.Sprintf("not a snapshot: %v", err), made}
	}
	if err := s.check(); err != nil {
		return Snapshot{}, err
	}
	if _, err := io.Copy(io.Discard, plain); err != nil { // the checksum is at the end
		return Snapshot{}, &FileError{"the snapshot is damaged", "copy or make it again"}
	}
	return s, nil
}

// check refuses a snapshot of another version, and one whose parts do not fit.
func (s *Snapshot) check() error {
	if kind, version, _ := strings.Cut(s.Schema, "/"); s.Schema != SnapshotSchema {
		if kind == strings.TrimSuffix(SnapshotSchema, "/v1") {
			return &FileError{fmt.Sprintf("the snapshot has the format %.20q, and this program reads v1", version),
				"open it with the version of plimsoll that made it, or a later one"}
		}
		return &FileError{fmt.Sprintf("not a snapshot: its schema is %.60q, not %q", s.Schema, SnapshotSchema),
			"`plimsoll snapshot -o FILE` makes one"}
	}
	if len(s.View.Rows) > maxSnapshotRows || len(s.Containers) > maxSnapshotRows {
		return &FileError{fmt.Sprintf("the snapshot has more than %d containers", maxSnapshotRows),
			"it was not made by plimsoll"}
	}
	for i := range s.Containers {
		k := &s.Containers[i]
		if len(k.Periods) == 0 {
			continue
		}
		if _, err := recent.Decode(nil, k.Periods); err != nil {
			return &FileError{fmt.Sprintf("container %.80q of the snapshot: %v", k.ID, err), "copy or make it again"}
		}
	}
	s.View.Recorded = &s.Made
	if s.View.Rows == nil {
		s.View.Rows = []Row{}
	}
	return nil
}

// Detail is that of a row; false where the snapshot has no such row.
func (s *Snapshot) Detail(id string) (Detail, bool) {
	for _, row := range s.View.Rows {
		if row.ID != id {
			continue
		}
		for i := range s.Containers {
			if k := &s.Containers[i]; k.ID == id {
				list, _ := recent.Decode(nil, k.Periods) // which check has read
				return NewDetail(row, s.View.Recording, k.Note, list), true
			}
		}
		return NewDetail(row, s.View.Recording, Note{}, nil), true
	}
	return Detail{}, false
}

// bounded ends with an error where there is more than was agreed.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, &FileError{"the snapshot is too large", "it was not made by plimsoll"}
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
