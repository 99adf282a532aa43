package main

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/strategy"
)

// TestJSONIsOfItsType: encoding/json writes the fields that the types have, also where a type encodes itself.
func TestJSONIsOfItsType(t *testing.T) {
	for _, d := range documents() {
		full := reflect.New(reflect.TypeOf(d.value)).Elem()
		fill(full)
		data, err := json.Marshal(full.Interface())
		var tree any
		if err == nil {
			err = json.Unmarshal(data, &tree)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, want := written("", tree), declared("", full.Type())
		if slices.Sort(got); !slices.Equal(got, slices.Compact(slices.Sorted(slices.Values(want)))) {
			t.Errorf("%s: written %q, of the type %q", d.by, got, want)
		}
	}
}

// fill leaves nothing empty that could be omitted.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.New(v.Type().Key()).Elem(), value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	}
}

// written are the paths of all fields in a document.
func written(path string, v any) (list []string) {
	switch x := v.(type) {
	case map[string]any:
		for name, inner := range x {
			inside := strings.TrimPrefix(path+"."+name, ".")
			list = append(append(list, inside), written(inside, inner)...)
		}
	case []any:
		for _, inner := range x {
			list = append(list, written(path+"[]", inner)...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// declared are the paths of all fields of a type.
func declared(path string, t reflect.Type) (list []string) {
	switch {
	case t == reflect.TypeFor[time.Time](), t == reflect.TypeFor[[]byte]():
	case t.Kind() == reflect.Pointer:
		return declared(path, t.Elem())
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		return declared(path+"[]", t.Elem())
	case t.Kind() == reflect.Map:
		return append(declared(path+".", t.Elem()), path+".")
	case t.Kind() == reflect.Struct:
		for _, f := range fieldsOf(t) {
			if f.name == "" {
				list = append(list, declared(path, f.Type)...)
				continue
			}
			inside := strings.TrimPrefix(path+"."+f.name, ".")
			list = append(append(list, inside), declared(inside, f.Type)...)
		}
	}
	return list
}

// TestStrategyIsDocumented: docs/CONFIG.md has each field of the strategy in a status.
func TestStrategyIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/CONFIG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range declared("", reflect.TypeFor[strategy.Strategy]()) {
		if name := path[strings.LastIndex(path, ".")+1:]; !regexp.MustCompile(`\b` + name + `\b`).Match(text) {
			t.Errorf("docs/CONFIG.md does not name %s", path)
		}
	}
}
