package config

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"plimsoll/internal/printable"
	"plimsoll/internal/strategy"
)

// ReceiptsAnnotation is the annotation of a pod none of whose spells are withheld.
const ReceiptsAnnotation = "plimsoll/receipts"

// OptsOut says whether the text of that annotation keeps a pod out, as every text does but "true": a misspelt "false"
// is no consent. A pod cannot opt in: its node's administrator says how much is measured.
func OptsOut(text string) bool { return text != "" && text != "true" }

// receipts reads a part of the spells: 1%.
func (r reader) receipts(p *strategy.Patch) read {
	return func(field string, n ast.Node) error {
		switch n.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode:
		default:
			return r.wrong(field, n, "a part such as 1%")
		}
		part, bad := parsePart(n.GetToken().Value)
		if bad == nil {
			bad = setField(&p.Receipts, &part, func() *fault { return checkStrategy(*p, "") })
		}
		return r.place(bad, field, n)
	}
}

func (r *jsonReader) receipts(field string, raw []byte, to, last *strategy.Patch) {
	read := func(field string, raw []byte) (float64, bool) {
		text, ok := r.text(field, raw)
		if !ok {
			return 0, false
		}
		part, bad := parsePart(text)
		if bad != nil {
			r.reject(field, bad)
		}
		return part, bad == nil
	}
	to.Receipts = kept(r, field, raw, last.Receipts, read, func(v *float64) *fault {
		return checkStrategy(strategy.Patch{Receipts: v}, "")
	})
}

// parsePart reads a part of a whole in percent, with its sign. 0 needs none.
func parsePart(text string) (float64, *fault) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil:
		return 0, faultf("such as 1%", "%q is not a part in percent", printable.Cut(text, longestWord))
	case !percent && v != 0:
		return 0, faultf("write "+number+"%", "%q has no percent sign", printable.Cut(text, longestWord))
	}
	return v / 100, nil
}
