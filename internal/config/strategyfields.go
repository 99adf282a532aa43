package config

import (
	"plimsoll/internal/printable"
	"plimsoll/internal/strategy"
)

// scope is a place that has fields of a strategy. What one may have, those before it may have too.
type scope int

const (
	ofNode  scope = iota // the node's: the section strategy of a file, or a ConfigMap
	ofGroup              // an override of a file
	ofPod                // an annotation, whose author is a tenant
)

// strategyField is a field of a strategy, and how it is read: of a file, whose author is told of every slip, and of the
// JSON of the peers, where a bad field keeps its last value.
type strategyField struct {
	name string
	most scope // the last place that may have it
	yaml func(r reader, p *strategy.Patch) read
	json func(r *jsonReader, field string, raw []byte, to, last *strategy.Patch)
}

// strategyFields is the one table of them.
func strategyFields() []strategyField {
	list := []strategyField{
		{"policy", ofPod, reader.policy, (*jsonReader).policy},
		{"loadLinePercent", ofNode, reader.loadLine, (*jsonReader).loadLine},
		{"receipts", ofGroup, reader.receipts, (*jsonReader).receipts},
	}
	for _, n := range strategy.Numbers() {
		most := ofPod
		if n.Node {
			most = ofNode
		}
		list = append(list, strategyField{n.Name, most,
			func(r reader, p *strategy.Patch) read { return r.whole(p, n.Of(p)) },
			func(r *jsonReader, field string, raw []byte, to, last *strategy.Patch) {
				*n.Of(to) = r.checked(field, raw, *n.Of(last), n)
			}})
	}
	return list
}

// strategy lists the fields of a strategy in a place of a file.
func (r reader) strategy(p *strategy.Patch, s scope) (list fields) {
	for _, f := range strategyFields() {
		if s <= f.most {
			list = append(list, entry{f.name, f.yaml(r, p)})
		} else {
			list = append(list, entry{f.name, r.nodeOnly})
		}
	}
	return list
}

// patch reads the fields of a strategy. A bad field keeps its value of last.
func (r *jsonReader) patch(field string, list []member, last strategy.Patch, s scope) (p strategy.Patch) {
	for _, m := range list {
		for _, f := range strategyFields() {
			if m.is(f.name) && s <= f.most && !m.null() {
				f.json(r, join(field, f.name), m.value, &p, &last)
			}
		}
	}
	return p
}

func (r reader) policy(p *strategy.Patch) read {
	return r.text(func(text string) *fault {
		policy := strategy.Policy(text)
		return setField(&p.Policy, &policy, func() *fault { return checkStrategy(*p, text) })
	})
}

func (r *jsonReader) policy(field string, raw []byte, to, last *strategy.Patch) {
	read := func(field string, raw []byte) (strategy.Policy, bool) {
		text, ok := r.text(field, raw)
		return strategy.Policy(printable.Cut(text, longestWord)), ok // no policy is as long
	}
	to.Policy = kept(r, field, raw, last.Policy, read, func(p *strategy.Policy) *fault {
		return checkStrategy(strategy.Patch{Policy: p}, string(*p))
	})
}

func (r reader) loadLine(p *strategy.Patch) read {
	return r.number(func(value float64) *fault {
		return setField(&p.LoadLinePercent, &value, func() *fault { return checkStrategy(*p, "") })
	})
}

func (r *jsonReader) loadLine(field string, raw []byte, to, last *strategy.Patch) {
	to.LoadLinePercent = kept(r, field, raw, last.LoadLinePercent, r.number, func(v *float64) *fault {
		return checkStrategy(strategy.Patch{LoadLinePercent: v}, "")
	})
}

// whole reads a whole number into one field of the patch.
func (r reader) whole(p *strategy.Patch, to **int64) read {
	return r.integer(func(value int64) *fault {
		return setField(to, &value, func() *fault { return checkStrategy(*p, "") })
	})
}

// checked reads a whole number.
func (r *jsonReader) checked(field string, raw []byte, last *int64, n strategy.Number) *int64 {
	return kept(r, field, raw, last, r.integer, func(v *int64) *fault {
		var p strategy.Patch
		*n.Of(&p) = v
		return checkStrategy(p, "")
	})
}
