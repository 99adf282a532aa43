package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/doctor"
	"plimsoll/internal/experiment"
	"plimsoll/internal/golden"
	"plimsoll/internal/report"
	"plimsoll/internal/schedext/loader"
	"plimsoll/internal/strategy"
	"plimsoll/internal/view"
)

// documents are all that commands and addresses write as JSON, with their schema.
func documents() []document {
	return []document{
		{"plimsoll status", report.StatusSchema, report.Status{}},
		{"plimsoll report", report.ReportSchema, report.Report{}},
		{"plimsoll receipts", report.ReceiptsSchema, report.ReceiptList{}},
		{"plimsoll plan", report.PlanSchema, report.Plan{}},
		{"plimsoll release, restore and retire", report.ResultsSchema, report.Results{}},
		{"plimsoll history", report.HistorySchema, report.History{}},
		{"plimsoll replay", report.ReplaySchema, report.Replay{}},
		{"plimsoll record", report.RecordingSchema, report.Recording{}},
		{"plimsoll simulate", "", report.Simulation{}},
		{"plimsoll simulate --sweep", report.SweepSchema, report.Sweep{}},
		{"plimsoll advise", report.AdviceSchema, report.Advice{}},
		{"plimsoll diagnose", report.DiagnosisSchema, report.Diagnosis{}},
		{"plimsoll doctor", doctor.Schema, doctor.Report{}},
		{"plimsoll demo", experiment.Schema, experiment.Result{}},
		{"plimsoll sched status", loader.Schema, loader.Report{}},
		{"plimsoll sched check", loader.Schema, loader.Findings{}},
		{"kubectl plimsoll", report.ClusterSchema, report.Cluster[report.Status]{}},
		{"GET /api/v1/view", view.Schema, view.View{}},
		{"GET /api/v1/container", "", view.Detail{}},
		{"GET /api/v1/snapshot", view.SnapshotSchema, view.Snapshot{}},
	}
}

type document struct {
	by, schema string
	value      any
}

// TestJSONIsDocumented: docs/REFERENCE.md has each field of each document, made of its type and its comment.
func TestJSONIsDocumented(t *testing.T) {
	r := newReference(t)
	text := r.text()
	if n := strings.Count(text, "\n| `"); n < 400 {
		t.Errorf("only %d fields", n)
	}
	golden.Part(t, referenceFile, "json", text)
}

// field is one of a structure that is written as JSON. Without a name, its own fields stand in its place.
type field struct {
	reflect.StructField
	name               string
	optional, asString bool
}

func fieldsOf(t reflect.Type) (list []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if !f.Anonymous {
			name = cmp.Or(name, f.Name)
		}
		list = append(list, field{f, name, strings.Contains(options, "omit"), options == "string"})
	}
	return list
}

// reference writes the documents as Markdown. An object that is in one place has its fields in the table of the
// document; one that is in several has a table of its own.
type reference struct {
	*testing.T
	comments map[string]string       // by the path of a package, type and field
	heading  map[reflect.Type]string // of documents, and of objects that are in several places
	seen     map[reflect.Type]bool
	several  []reflect.Type
}

func newReference(t *testing.T) *reference {
	r := &reference{T: t, comments: map[string]string{}, heading: map[reflect.Type]string{},
		seen: map[reflect.Type]bool{}}
	for _, d := range documents() {
		r.heading[reflect.TypeOf(d.value)] = "JSON of " + d.by
	}
	for _, d := range documents() {
		r.visit(reflect.TypeOf(d.value))
	}
	return r
}

// visit reads the comments of a type and of all types in it, and finds those that are in several places.
func (r *reference) visit(t reflect.Type) {
	r.read(t.PkgPath())
	for _, f := range fieldsOf(t) {
		inner, ok := object(f.Type)
		switch {
		case !ok || r.heading[inner] != "":
		case r.seen[inner]:
			r.heading[inner] = "Object " + inner.Name()
			if slices.ContainsFunc(r.several, func(other reflect.Type) bool { return other.Name() == inner.Name() }) {
				r.Fatalf("two types of the name %s are in several places", inner.Name())
			}
			r.several = append(r.several, inner)
		default:
			r.seen[inner] = true
			r.visit(inner)
		}
	}
}

// read reads the comments of a package.
func (r *reference) read(pkg string) {
	dir := filepath.Join("../..", strings.TrimPrefix(pkg, "plimsoll/"))
	if _, done := r.comments[pkg]; done {
		return
	}
	r.comments[pkg] = ""
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		r.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			r.Fatal(err)
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
				for _, spec := range d.Specs {
					r.readType(pkg, d, spec.(*ast.TypeSpec))
				}
			}
		}
	}
}

func (r *reference) readType(pkg string, decl *ast.GenDecl, spec *ast.TypeSpec) {
	name := pkg + "." + spec.Name.Name
	r.comments[name] = line(cmp.Or(spec.Doc, decl.Doc))
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range structure.Fields.List {
		for _, id := range f.Names {
			r.comments[name+"."+id.Name] = strings.TrimSpace(line(f.Doc) + " " + line(f.Comment))
		}
	}
}

// line is a comment in one line.
func line(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// comment is that of a type, or of its field.
func (r *reference) comment(t reflect.Type, field string) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	text := r.comments[t.PkgPath()+"."+name+field]
	if text == "" || strings.Contains(text, "nil") {
		r.Errorf("%s.%s%s is written as JSON: its comment is to tell readers of JSON what it is, and is %q",
			t.PkgPath(), name, field, text)
	}
	return strings.ReplaceAll(text, "|", `\|`)
}

func (r *reference) text() string {
	var b strings.Builder
	for _, d := range documents() {
		t := reflect.TypeOf(d.value)
		_, more, _ := strings.Cut(r.comment(t, ""), ". ") // the first sentence is for readers of the code
		if d.schema != "" {
			more = fmt.Sprintf("Schema: `%s`. %s", d.schema, more)
		}
		r.table(&b, t, more)
	}
	for _, t := range r.several {
		r.table(&b, t, r.comment(t, ""))
	}
	return b.String()
}

func (r *reference) table(b *strings.Builder, t reflect.Type, text string) {
	fmt.Fprintf(b, "\n### %s\n\n", r.heading[t])
	if text != "" {
		b.WriteString(wrapped(text) + "\n\n")
	}
	b.WriteString("| Field | Type | Meaning |\n|---|---|---|\n")
	r.rows(b, t, "")
}

func (r *reference) rows(b *strings.Builder, t reflect.Type, path string) {
	for _, f := range fieldsOf(t) {
		inner, isObject := object(f.Type)
		inline := isObject && r.heading[inner] == ""
		switch {
		case f.name == "schema":
			continue
		case f.name != "":
			kind := r.kind(f.Type)
			if f.asString {
				kind = "string"
			}
			switch {
			case f.optional:
				kind += ", optional"
			case f.Type.Kind() == reflect.Pointer:
				kind += " or null"
			}
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", path+f.name, kind, r.comment(t, "."+f.Name))
		case !inline:
			fmt.Fprintf(b, "| `%s…` | | all fields of %s |\n", path, r.link(inner))
		}
		if inline {
			inside := path
			if f.name != "" {
				inside += f.name + lists(f.Type) + "."
			}
			r.rows(b, inner, inside)
		}
	}
}

// object is the structure in a type of fields, which may be a list of them.
func object(t reflect.Type) (reflect.Type, bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array ||
		t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t, t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() &&
		t != reflect.TypeFor[strategy.Strategy]()
}

// lists is "[]" for a list.
func lists(t reflect.Type) string {
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		return "[]"
	}
	return ""
}

// kind is a type as a reader of JSON sees it.
func (r *reference) kind(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "ns"
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t == reflect.TypeFor[[]byte]():
		return "base64"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return r.kind(t.Elem())
	case reflect.Slice:
		return "list of " + r.kind(t.Elem())
	case reflect.Array:
		return fmt.Sprintf("list of %d %ss", t.Len(), r.kind(t.Elem()))
	case reflect.Map:
		return "map of " + r.kind(t.Elem())
	case reflect.Struct:
		if r.heading[t] != "" {
			return r.link(t)
		}
		return "object"
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Float64:
		return "number"
	}
	return "integer"
}

func (r *reference) link(t reflect.Type) string {
	anchor := strings.NewReplacer(" ", "-", "/", "").Replace(strings.ToLower(r.heading[t]))
	return fmt.Sprintf("[%s](#%s)", t.Name(), anchor)
}

// wrapped is prose in lines of 120 columns.
func wrapped(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch n := len([]rune(word)); {
		case column > 0 && column+1+n > 120:
			b.WriteString("\n")
			column = n
		case column > 0:
			b.WriteString(" ")
			column += 1 + n
		default:
			column = n
		}
		b.WriteString(word)
	}
	return b.String()
}
