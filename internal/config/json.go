package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"plimsoll/internal/printable"
)

// jsonReader reads the text of one key of one object. What it cannot take it notes, and goes on: of two fields the bad
// one does not cost the good one. Names are compared without regard to case, and outside of selectors an unknown field
// is no fault, as with encoding/json, by which the peers read the same text.
type jsonReader struct {
	object, key string
	bad         []*Rejected // of at most mostFaults fields
	faults      int         // all of them
}

// mostFaults bounds what is said of one text: whoever writes it chooses how many faults it has.
const mostFaults = 16

func (r *jsonReader) reject(field string, f *fault) {
	r.faults++
	switch n := len(r.bad); {
	case n < mostFaults-1:
		r.bad = append(r.bad, f.in(r.object, r.key, field))
	case n == mostFaults-1:
		r.bad = append(r.bad, faultf("", "more faults than these").in(r.object, r.key, ""))
	}
}

// member is one field of an object, in the order of the text: the last of two of the same name counts.
type member struct {
	name  string
	value []byte
}

func (m member) is(name string) bool { return strings.EqualFold(m.name, name) }

func (m member) null() bool { return string(m.value) == "null" }

var errTrailing = errors.New("more text after the end")

// parsed reads the text of a key. An empty text sets nothing. A text that is not an object keeps the last result.
func parsed[T any](object, key, text string, last T, read func(*jsonReader, []member) T) (T, []*Rejected) {
	if strings.TrimSpace(text) == "" {
		var nothing T
		return nothing, nil
	}
	r := &jsonReader{object: object, key: key}
	list, ok := r.whole(text)
	if !ok {
		return last, r.bad
	}
	return read(r, list), r.bad
}

// whole reads a text that is one object and nothing else; false when it is not.
func (r *jsonReader) whole(text string) ([]member, bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	var raw json.RawMessage
	err := dec.Decode(&raw)
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = errTrailing
		}
	}
	if err != nil {
		r.reject("", faultf(`such as {"policy": "auto"}`, "not JSON: %v", err))
		return nil, false
	}
	return r.members("", raw)
}

// members lists the fields of a value that is an object, and of null, which is the empty one.
func (r *jsonReader) members(field string, raw []byte) ([]member, bool) {
	if string(raw) == "null" {
		return nil, true
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		r.wrong(field, "an object {...}", raw)
		return nil, false
	}
	var list []member
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err == nil {
			err = dec.Decode(&value)
		}
		if err != nil { // not of a text that was read before
			r.reject(field, faultf("", "not JSON: %v", err))
			return nil, false
		}
		list = append(list, member{fmt.Sprint(name), value})
	}
	return list, true
}

// elements lists the elements of a value that is an array, and of null, which is the empty one.
func (r *jsonReader) elements(field string, raw []byte) ([]json.RawMessage, bool) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		r.wrong(field, "a list [...]", raw)
		return nil, false
	}
	return list, true
}

func (r *jsonReader) text(field string, raw []byte) (string, bool) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil || string(raw) == "null" {
		r.wrong(field, "text", raw)
		return "", false
	}
	return s, true
}

// texts reads a list of texts. One that is none costs only itself.
func (r *jsonReader) texts(field string, raw []byte) (texts []string, ok bool) {
	list, ok := r.elements(field, raw)
	for i, e := range list {
		if s, ok := r.text(fmt.Sprintf("%s[%d]", field, i), e); ok {
			texts = append(texts, s)
		}
	}
	return texts, ok
}

func (r *jsonReader) integer(field string, raw []byte) (int64, bool) {
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		r.wrong(field, "a whole number", raw)
		return 0, false
	}
	return v, true
}

func (r *jsonReader) number(field string, raw []byte) (float64, bool) {
	var v float64
	if err := json.Unmarshal(raw, &v); err != nil || string(raw) == "null" {
		r.wrong(field, "a number", raw)
		return 0, false
	}
	return v, true
}

// longestValue is how much is shown of a value of the wrong type.
const longestValue = 44

// wrong says that a value has the wrong type.
func (r *jsonReader) wrong(field, want string, raw []byte) {
	got := printable.Cut(string(raw), longestValue)
	hint := ""
	if unquoted := strings.Trim(got, `"`); unquoted != got {
		if _, err := strconv.ParseInt(unquoted, 10, 64); err == nil {
			hint = "remove the quotes"
		}
		if number, ok := inPercent(unquoted); ok && strings.HasSuffix(field, "Percent") {
			hint = "the field is in percent: write " + number
		}
	}
	r.reject(field, faultf(hint, "must be %s, not %s", want, got))
}

// kept is a value that was read and found good, or else what it was before.
func kept[T any](r *jsonReader, field string, raw []byte, last *T, read func(field string, raw []byte) (T, bool),
	check func(*T) *fault) *T {
	v, ok := read(field, raw)
	if !ok {
		return last
	}
	if f := check(&v); f != nil {
		r.reject(field, f)
		return last
	}
	return &v
}
