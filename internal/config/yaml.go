package config

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file that a person wrote. The parser takes time and memory in the square of the depth, and depth
// needs either an open bracket or an indented column a level.
const (
	maxBytes  = 256 << 10
	maxColumn = 1000
	maxOpen   = 100
)

// reader walks the syntax tree of a file, so that each error knows its line. Nothing is guessed: a field that is
// not known, a number in quotes and a field given twice are errors.
type reader struct{ name string }

// read reads one value; field is the path of the value's field.
type read func(field string, n ast.Node) error

// entry is a field that a mapping may have.
type entry struct {
	name string
	read read
}

type fields []entry

func (l fields) names() []string {
	names := make([]string, len(l))
	for i, e := range l {
		names[i] = e.name
	}
	return names
}

func (l fields) find(name string) read {
	for _, e := range l {
		if e.name == name {
			return e.read
		}
	}
	return nil
}

// document parses the text; nil is the empty document.
func (r reader) document(data []byte) (ast.Node, error) {
	if err := r.bounds(data); err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey()) // mapping finds them, with both lines
	if err != nil {
		return nil, r.syntax(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if _, ok := doc.Body.(*ast.DirectiveNode); ok || doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, faultf("remove the line ---", "a second document").at(r.name, line(doc.Body), "")
		}
		body = doc.Body
	}
	return body, nil
}

// bounds refuses what cannot be a configuration file before it is parsed.
func (r reader) bounds(data []byte) error {
	if len(data) > maxBytes {
		return faultf("", "longer than %d bytes", maxBytes).at(r.name, 1, "")
	}
	open := 0
	for i, text := range bytes.Split(data, []byte("\n")) {
		open += bytes.Count(text, []byte("[")) + bytes.Count(text, []byte("{")) -
			bytes.Count(text, []byte("]")) - bytes.Count(text, []byte("}"))
		switch {
		case !utf8.Valid(text):
			return faultf("", "not UTF-8 text").at(r.name, i+1, "")
		case len(text) > maxColumn:
			return faultf("", "a line longer than %d bytes", maxColumn).at(r.name, i+1, "")
		case open > maxOpen:
			return faultf("", "more than %d open brackets", maxOpen).at(r.name, i+1, "")
		}
	}
	return nil
}

func (r reader) syntax(err error) error {
	var at interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if !errors.As(err, &at) {
		return faultf("", "not YAML: %v", err).at(r.name, 1, "")
	}
	n, hint := 1, ""
	if t := at.GetToken(); t != nil && t.Position != nil {
		n = t.Position.Line
	}
	msg := strings.ReplaceAll(at.GetMessage(), "\t", `\t`)
	if strings.Contains(msg, `'\t'`) {
		hint = "indent with spaces, not with tabs"
	}
	return faultf(hint, "not YAML: %s", msg).at(r.name, n, "")
}

func line(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return n.GetToken().Position.Line
}

// mapping reads each field of a mapping, in the order of the file.
// A bad one does not keep those after it from being read.
func (r reader) mapping(field string, n ast.Node, known fields) error {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return r.wrong(field, n, "a mapping (name: value)")
	}
	seen := map[string]int{}
	var faults []error
	for _, kv := range m.Values {
		key, at := kv.Key.GetToken().Value, line(kv.Key)
		full := join(field, key)
		_, isName := kv.Key.(*ast.StringNode)
		first, twice := seen[key]
		read := known.find(key)
		switch {
		case !isName:
			faults = append(faults, faultf("", "not a field name").at(r.name, at, full))
		case twice:
			faults = append(faults, faultf("", "given twice, first in line %d", first).at(r.name, at, full))
		case read == nil:
			faults = append(faults, faultf(didYouMean(key, known.names()), "unknown field").at(r.name, at, full))
		default:
			faults = append(faults, read(full, kv.Value))
		}
		if !twice {
			seen[key] = at
		}
	}
	return errors.Join(faults...)
}

func join(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}

func (r reader) sequence(field string, n ast.Node, each read) error {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		return r.wrong(field, n, "a list (- value)")
	}
	faults := make([]error, len(s.Values))
	for i, v := range s.Values {
		faults[i] = each(fmt.Sprintf("%s[%d]", field, i), v)
	}
	return errors.Join(faults...)
}

// optional lets a section be empty, as it is when all its lines are commented out.
func (r reader) optional(inner read) read {
	return func(field string, n ast.Node) error {
		if _, ok := n.(*ast.NullNode); ok {
			return nil
		}
		return inner(field, n)
	}
}

func (r reader) text(take func(string) *fault) read {
	return func(field string, n ast.Node) error {
		s, ok := n.(*ast.StringNode)
		if !ok {
			return r.wrong(field, n, "text")
		}
		return r.place(take(s.Value), field, n)
	}
}

func (r reader) integer(take func(int64) *fault) read {
	return func(field string, n ast.Node) error {
		i, ok := n.(*ast.IntegerNode)
		if !ok {
			return r.wrong(field, n, "a whole number")
		}
		// 010 is eight to some readers of YAML and ten to others, 0x10 and 1_000 are taken by few.
		v, err := strconv.ParseInt(i.Token.Value, 10, 64)
		if err != nil || strconv.FormatInt(v, 10) != i.Token.Value {
			return faultf("decimal digits only", "%s is not a whole number", i.Token.Value).at(r.name, line(n), field)
		}
		return r.place(take(v), field, n)
	}
}

// number reads a number that need not be whole.
func (r reader) number(take func(float64) *fault) read {
	return func(field string, n ast.Node) error {
		switch n.(type) {
		case *ast.IntegerNode, *ast.FloatNode:
		default:
			return r.wrong(field, n, "a number")
		}
		v, err := strconv.ParseFloat(n.GetToken().Value, 64)
		if err != nil {
			return r.wrong(field, n, "a number")
		}
		return r.place(take(v), field, n)
	}
}

// quantity reads an amount of CPU: a number, or text as in Kubernetes.
func (r reader) quantity(take func(float64)) read {
	return func(field string, n ast.Node) error {
		switch n.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
		default:
			return r.wrong(field, n, "an amount of CPU")
		}
		v, bad := parseCPUs(n.GetToken().Value)
		if bad == nil {
			take(v)
		}
		return r.place(bad, field, n)
	}
}

// place gives a fault its place. A nil *fault becomes a nil error.
func (r reader) place(f *fault, field string, n ast.Node) error {
	if f == nil {
		return nil
	}
	return f.at(r.name, line(n), field)
}

// inPercent is the number of a text such as 70%.
func inPercent(text string) (number string, ok bool) {
	number, ok = strings.CutSuffix(text, "%")
	number = strings.TrimSpace(number)
	_, err := strconv.ParseFloat(number, 64)
	return number, ok && err == nil
}

// wrong says that a value has the wrong type.
func (r reader) wrong(field string, n ast.Node, want string) error {
	got, hint := "", ""
	switch v := n.(type) {
	case *ast.NullNode:
		return faultf("leave the field out to inherit it", "has no value").at(r.name, line(n), field)
	case *ast.StringNode:
		got = strconv.Quote(v.Value)
		if _, err := strconv.ParseFloat(v.Value, 64); err == nil && v.Token.Type != token.StringType {
			hint = "remove the quotes"
		}
		if number, ok := inPercent(v.Value); ok && strings.HasSuffix(field, "Percent") {
			hint = "the field is in percent: write " + number
		}
	case *ast.LiteralNode:
		got = "a block of text"
	case *ast.MappingNode:
		got = "a mapping"
	case *ast.SequenceNode:
		got = "a list"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		got, hint = "an anchor or alias", "write the value out; a glob that begins with * needs a / before it"
	case *ast.TagNode:
		got, hint = "a tag", "remove the "+v.Start.Value
	default:
		got = n.GetToken().Value
	}
	return faultf(hint, "must be %s, not %s", want, got).at(r.name, line(n), field)
}
