package config

import (
	"fmt"
	"strings"

	"plimsoll/internal/printable"
)

// Rejected is a field of a Kubernetes object that cannot be taken as it stands, and what is done instead.
type Rejected struct {
	Object string // "ConfigMap kube-system/ack-slo-config", "Pod default/web"
	Key    string // of the ConfigMap's data, or the annotation's name
	Field  string // "clusterStrategy.policy"; "" when the text as a whole is at fault
	Msg    string
	Hint   string // what to do about it; may be empty
}

// The most that is shown of a fault. A word or value that a text has is cut before,
// so that what is wrong with it has room.
const (
	longestField = 128
	longestFault = 512
)

// in says where a fault is. Its words may be from the text, which need not print.
func (f *fault) in(object, key, field string) *Rejected {
	return &Rejected{Object: object, Key: key, Field: printable.Excerpt(field, longestField),
		Msg: printable.Excerpt(f.msg, longestFault), Hint: printable.Excerpt(f.hint, longestFault)}
}

func (r *Rejected) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: ", r.Object, r.Key)
	if r.Field != "" {
		b.WriteString(r.Field + ": ")
	}
	b.WriteString(r.Msg)
	if r.Hint != "" {
		b.WriteString(" (" + r.Hint + ")")
	}
	return b.String()
}
