package config

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"plimsoll/internal/strategy"
)

// TenantsKey is the key of a ConfigMap with what the section tenants of a file has.
const TenantsKey = "plimsoll-tenants"

// Tenants is what the file allows to those who may write pods.
func (f *File) Tenants() Tenants { return f.tenants }

// tenants reads the section of that name.
func (r reader) tenants(t *Tenants) read {
	cores := func(to *strategy.Bound) read {
		return r.quantity(func(v float64) { *to = strategy.Bound{Set: true, CPUs: v} })
	}
	return r.optional(func(field string, n ast.Node) error {
		return r.mapping(field, n, fields{
			{"extraCoresPerPod", cores(&t.Extra.PerPod)},
			{"extraCoresPerNamespace", cores(&t.Extra.PerNamespace)},
			{"extraCoresPerNode", cores(&t.Extra.PerNode)},
			{"exclusiveNamespaces", func(field string, n ast.Node) error {
				t.exclusive = &[]string{}
				return r.texts(t.exclusive)(field, n)
			}},
			{"annotationMaxima", r.optional(func(field string, n ast.Node) error {
				return r.sequence(field, n, func(field string, n ast.Node) error {
					m, err := r.maximum(field, n)
					t.maxima = append(t.maxima, m)
					return err
				})
			})},
		})
	})
}

func (r reader) texts(to *[]string) read {
	return func(field string, n ast.Node) error {
		return r.sequence(field, n, r.text(func(text string) *fault { *to = append(*to, text); return nil }))
	}
}

func (r reader) maximum(field string, n ast.Node) (m maximum, err error) {
	list := fields{{"namespaces", r.texts(&m.namespaces)}}
	for _, number := range numbers() {
		list = append(list, entry{number.Name, r.whole(&m.most, number.Of(&m.most))})
	}
	err = r.mapping(field, n, list)
	if err == nil && m.namespaces == nil {
		err = r.place(noNamespaces(), field+".namespaces", n)
	}
	return m, err
}

func noNamespaces() *fault {
	return faultf(`such as ["platform"], or ["*"] for every namespace`, "missing")
}

// NoExtraCores allows no CPUs above limits. It stands for bounds that are not known, since the text that an agent finds
// when it starts is bad: on the agents that knew the text before, the last good one binds.
func NoExtraCores() Tenants {
	none := strategy.Bound{Set: true}
	return Tenants{Extra: strategy.ExtraCores{PerPod: none, PerNamespace: none, PerNode: none}}
}

// ParseTenants reads the key plimsoll-tenants. What is bad keeps its value of last; of annotationMaxima the whole
// list, for half of it would allow other namespaces more. The key is Plimsoll's own: an unknown field is a typing
// error, and where it could be a bound, those that the text does not name keep their values, too.
func ParseTenants(object, text string, last Tenants) (Tenants, []*Rejected) {
	return parsed(object, TenantsKey, text, last, func(r *jsonReader, list []member) (t Tenants) {
		mistyped := false
		for _, m := range list {
			switch to := boundOf(&t.Extra, m.name); {
			case to != nil:
				*to = r.cores(m, *boundOf(&last.Extra, m.name))
			case m.is("exclusiveNamespaces"):
				t.exclusive = last.exclusive
				if names, ok := r.texts(m.name, m.value); ok {
					t.exclusive = &names
				}
			case m.is("annotationMaxima"):
				t.maxima = r.maxima(m, last.maxima)
			default:
				known := []string{"extraCoresPerPod", "extraCoresPerNamespace", "extraCoresPerNode",
					"exclusiveNamespaces", "annotationMaxima"}
				r.unknown(m.name, m.name, known)
				mistyped = mistyped || boundOf(&t.Extra, nearest(m.name, known)) != nil
			}
		}
		if mistyped {
			t.Extra = t.Extra.Over(last.Extra)
		}
		return t
	})
}

// boundOf is the bound of this name; nil: there is none.
func boundOf(e *strategy.ExtraCores, name string) *strategy.Bound {
	switch {
	case strings.EqualFold(name, "extraCoresPerPod"):
		return &e.PerPod
	case strings.EqualFold(name, "extraCoresPerNamespace"):
		return &e.PerNamespace
	case strings.EqualFold(name, "extraCoresPerNode"):
		return &e.PerNode
	}
	return nil
}

func (r *jsonReader) cores(m member, last strategy.Bound) strategy.Bound {
	if m.null() {
		return strategy.Bound{}
	}
	v := kept(r, m.name, m.value, nil, r.number, func(v *float64) *fault {
		if *v < 0 || *v > maxRequest {
			return faultf("", "%v is outside 0..%d", *v, maxRequest)
		}
		return nil
	})
	if v == nil {
		return last
	}
	return strategy.Bound{Set: true, CPUs: *v}
}

func (r *jsonReader) maxima(m member, last []maximum) []maximum {
	before := r.faults
	list, _ := r.elements(m.name, m.value)
	var all []maximum
	for i, raw := range list {
		all = append(all, r.maximum(fmt.Sprintf("%s[%d]", m.name, i), raw))
	}
	if r.faults > before {
		return last
	}
	return all
}

func (r *jsonReader) maximum(field string, raw []byte) (m maximum) {
	list, ok := r.members(field, raw)
	known := []string{"namespaces"}
	for _, n := range numbers() {
		known = append(known, n.Name)
	}
	for _, f := range list {
		if f.is("namespaces") && !f.null() {
			m.namespaces, _ = r.texts(join(field, f.name), f.value)
		}
		if !contains(f, known) {
			r.unknown(join(field, f.name), f.name, known)
		}
	}
	m.most = r.patch(field, list, strategy.Patch{}, ofPod)
	if ok && m.namespaces == nil {
		r.reject(field+".namespaces", noNamespaces())
	}
	return m
}

func (r *jsonReader) unknown(field, name string, known []string) {
	r.reject(field, faultf(didYouMean(name, known), "unknown field"))
}

func contains(m member, names []string) bool {
	for _, n := range names {
		if m.is(n) {
			return true
		}
	}
	return false
}
