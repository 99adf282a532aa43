package config

import (
	"fmt"
	"strings"
)

// Rejected is a field of a Kubernetes object that cannot be taken as it stands, and what is done instead.
type Rejected struct {
	Object string // "ConfigMap kube-system/ack-slo-config", "Pod default/web"
	Key    string // of the ConfigMap's data, or the annotation's name
	Field  string // "clusterStrategy.policy"; "" when the text as a whole is at fault
	Msg    string
	Hint   string // what to do about it; may be empty
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
