package report

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// TestSameSeesEachField: two containers that differ in one field of their JSON, however deep it is, are not the same.
func TestSameSeesEachField(t *testing.T) {
	full := func() *Container {
		c := &Container{}
		fill(reflect.ValueOf(c).Elem())
		return c
	}
	if a, b := full(), full(); !a.Same(b) {
		t.Fatal("two equal containers are not the same")
	}
	n := leaves(reflect.ValueOf(full()).Elem())
	seen := 0
	for i := range n {
		c := full()
		at := i
		change(reflect.ValueOf(c).Elem(), &at)
		before, err1 := json.Marshal(full())
		after, err2 := json.Marshal(c)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if string(before) == string(after) {
			continue
		}
		if seen++; c.Same(full()) || full().Same(c) {
			t.Errorf("a change is not seen:\n%s\n%s", before, after)
		}
	}
	if seen < 60 {
		t.Errorf("only %d fields were changed", seen)
	}
	for _, empty := range []func(*Container){func(c *Container) { c.Paused = nil },
		func(c *Container) { c.Totals.Events = nil }, func(c *Container) { c.Totals.Waited = nil },
		func(c *Container) { c.Requests = nil }, func(c *Container) { c.BudgetLeft = nil }, func(c *Container) {
			c.Quota.Since = nil
		}, func(c *Container) { c.Totals.Events.Lengths = nil }} {
		c := full()
		if empty(c); c.Same(full()) || full().Same(c) {
			t.Error("a value that is gone is not seen")
		}
	}
}

// fill makes every pointer point to something, and every slice have an element.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(t0))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

func leaves(v reflect.Value) int {
	n := 1 << 20
	at := n
	change(v, &at)
	return n - at
}

// change changes the at-th leaf, and counts at down.
func change(v reflect.Value, at *int) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		if *at == 0 {
			v.Set(reflect.ValueOf(t0.Add(time.Second)))
		}
		*at--
	case v.Kind() == reflect.Pointer:
		change(v.Elem(), at)
	case v.Kind() == reflect.Slice:
		change(v.Index(0), at)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			change(v.Field(i), at)
		}
	default:
		if *at == 0 {
			leaf(v)
		}
		*at--
	}
}

func leaf(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(v.Int() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
	default:
		panic(v.Kind())
	}
}
