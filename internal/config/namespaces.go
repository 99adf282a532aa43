package config

import (
	"plimsoll/internal/strategy"
)

// Namespaces lists namespaces in which containers are burst, or are not burst, whatever the node's strategy says.
type Namespaces struct{ enabled, disabled map[string]bool }

// For is what the pods of a namespace get: policy auto, none, or nothing of its own. Disabled wins, as at ACK.
func (n Namespaces) For(namespace string) strategy.Patch {
	var p strategy.Policy
	switch {
	case n.disabled[namespace]:
		p = strategy.None
	case n.enabled[namespace]:
		p = strategy.Auto
	default:
		return strategy.Patch{}
	}
	return strategy.Patch{Policy: &p}
}

// ParseNamespaces reads the key cpu-burst. A list that is none keeps its value of last, as does the whole where the
// text is no JSON; an entry that is no text is left out.
func ParseNamespaces(object, text string, last Namespaces) (Namespaces, []*Rejected) {
	return parsed(object, NamespaceKey, text, last, func(r *jsonReader, list []member) Namespaces {
		var n Namespaces
		for _, m := range list {
			switch {
			case m.is("enabledNamespaces"):
				n.enabled = r.set("enabledNamespaces", m.value, last.enabled)
			case m.is("disabledNamespaces"):
				n.disabled = r.set("disabledNamespaces", m.value, last.disabled)
			}
		}
		return n
	})
}

func (r *jsonReader) set(field string, raw []byte, last map[string]bool) map[string]bool {
	names, ok := r.texts(field, raw)
	if !ok {
		return last
	}
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
