package config

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Selector chooses nodes by their labels, as a LabelSelector of Kubernetes does. The zero Selector matches every node.
type Selector struct{ terms []term }

// term is one condition of a selector, which matches when all its terms match.
type term struct {
	key    string
	op     string
	values []string
}

// Matches says whether a node with these labels is chosen.
func (s Selector) Matches(labels map[string]string) bool {
	for _, t := range s.terms {
		if !t.matches(labels) {
			return false
		}
	}
	return true
}

// matches is k8s.io/apimachinery's labels.Requirement.Matches: a missing label is in no list.
func (t term) matches(labels map[string]string) bool {
	value, there := labels[t.key]
	switch t.op {
	case "In":
		return there && slices.Contains(t.values, value)
	case "NotIn":
		return !there || !slices.Contains(t.values, value)
	case "Exists":
		return there
	default:
		return !there
	}
}

// selector reads a LabelSelector. A bad one is not used at all: half of it would choose more nodes than the whole. The
// peers ignore an unknown field, and here it is a fault: without it the selector may choose every node.
func (r *jsonReader) selector(field string, raw []byte) (Selector, bool) {
	before := r.faults
	var s Selector
	list, _ := r.members(field, raw)
	for _, m := range list {
		switch {
		case m.is("matchLabels"):
			labels, _ := r.members(join(field, "matchLabels"), m.value)
			for _, l := range labels {
				if value, ok := r.text(join(field, "matchLabels."+l.name), l.value); ok {
					s.terms = append(s.terms, term{l.name, "In", []string{value}})
				}
			}
		case m.is("matchExpressions"):
			terms, _ := r.elements(join(field, "matchExpressions"), m.value)
			for i, raw := range terms {
				s.terms = append(s.terms, r.term(fmt.Sprintf("%s.matchExpressions[%d]", field, i), raw))
			}
		default:
			r.unknown(join(field, m.name), m.name, []string{"matchLabels", "matchExpressions"})
		}
	}
	return s, r.faults == before
}

func (r *jsonReader) term(field string, raw json.RawMessage) term {
	var t term
	list, _ := r.members(field, raw)
	for _, m := range list {
		switch {
		case m.is("key"):
			t.key, _ = r.text(field+".key", m.value)
		case m.is("operator"):
			t.op, _ = r.text(field+".operator", m.value)
		case m.is("values"):
			t.values, _ = r.texts(field+".values", m.value)
		}
	}
	listed := t.op == "In" || t.op == "NotIn"
	switch {
	case t.key == "":
		r.reject(field+".key", faultf("", "missing"))
	case !listed && t.op != "Exists" && t.op != "DoesNotExist":
		operators := []string{"In", "NotIn", "Exists", "DoesNotExist"}
		r.reject(field+".operator", faultf(didYouMean(t.op, operators),
			"%q is not one of In, NotIn, Exists, DoesNotExist", t.op))
	case listed == (len(t.values) == 0):
		r.reject(field+".values", faultf("", "%s takes %s", t.op,
			map[bool]string{true: "at least one", false: "none"}[listed]))
	}
	return t
}
