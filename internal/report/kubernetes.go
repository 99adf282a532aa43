package report

import (
	"fmt"
	"strings"
)

// Kubernetes is the state of the connection to the API server.
type Kubernetes struct {
	Node      string `json:"node"`            // the name of the node
	Reachable bool   `json:"reachable"`       // the API server answers
	Fault     string `json:"error,omitempty"` // why it does not
	Ready     bool   `json:"ready"`           // everything was listed at least once: until then no pod may burst
	Pods      int    `json:"pods"`            // pods that the API server listed
	Matched   int    `json:"pods_matched"`    // of these, those with control groups

	ConfigMaps []ConfigMap `json:"configmaps,omitempty"` // that are read; of each key, the first that has it counts

	// fields of annotations, labels and ConfigMaps that cannot be taken as they stand, the first 200; also among the
	// `problems`
	Rejected      []Rejected `json:"rejected,omitempty"`
	RejectedNow   int        `json:"rejected_now"`   // all of them
	RejectedTotal int64      `json:"rejected_total"` // how many there were since the start
	// Events that were not made since the start, because there were too many
	EventsDropped int64 `json:"events_dropped"`
}

// ConfigMap is one that is read.
type ConfigMap struct {
	Name  string `json:"name"`  // NAMESPACE/NAME
	There bool   `json:"there"` // the ConfigMap is there
}

// Rejected is a field of a Kubernetes object that cannot be taken. Its last good value stays in force; without one it
// counts as absent.
type Rejected struct {
	Object string `json:"object"`          // such as `Pod default/web`
	Key    string `json:"key"`             // of the ConfigMap, or the name of the annotation or label
	Field  string `json:"field,omitempty"` // in the value of the key
	Fault  string `json:"error"`           // what is wrong
	Hint   string `json:"hint,omitempty"`  // what to do
}

// Status describes only so many rejected fields: authors of annotations determine their number and their texts.
const (
	mostRejected    = 20
	longestRejected = 300
)

// Problems are the rejected fields in words.
func (k *Kubernetes) Problems() []string {
	if k == nil {
		return nil
	}
	var list []string
	for _, r := range k.Rejected {
		if len(list) == mostRejected {
			list = append(list, fmt.Sprintf(ProblemMoreRejected, k.RejectedNow-mostRejected))
			break
		}
		list = append(list, r.line())
	}
	return list
}

// line is "Pod default/web: koordinator.sh/cpuBurst: policy: "on" is not one of ...: rejected, ... (hint: ...)".
func (r Rejected) line() string {
	line := r.Object + ": " + r.Key + ": "
	if r.Field != "" {
		line += r.Field + ": "
	}
	line += r.Fault
	if len(line) > longestRejected {
		line = strings.ToValidUTF8(line[:longestRejected], "") + "..."
	}
	line = fmt.Sprintf(ProblemRejected, line)
	if r.Hint != "" {
		line += " (hint: " + r.Hint + ")"
	}
	return line
}

// line is "the API server answers; it listed 12 pods of node n1, 11 have groups".
func (k Kubernetes) line() string {
	line := "the API server answers"
	if !k.Reachable {
		line = "the API server does not answer"
		if k.Fault != "" {
			line += " (" + k.Fault + ")"
		}
	}
	if !k.Ready {
		return line + "; it has not listed everything yet, and no pod is burst"
	}
	line += fmt.Sprintf("; it listed %s of node %s, %d with groups", several(k.Pods, "pod"), k.Node, k.Matched)
	before := "; ConfigMaps: "
	for _, m := range k.ConfigMaps {
		line += before + m.Name
		if !m.There {
			line += " (absent)"
		}
		before = ", "
	}
	if n := k.RejectedNow; n > 0 {
		line += fmt.Sprintf("; %s of configuration rejected", several(n, "field"))
	}
	return line
}

func kubernetesMetrics() []metric[Kubernetes] {
	return []metric[Kubernetes]{
		gauge("kubernetes_reachable", "1 while the API server answers.", nil,
			func(k Kubernetes) float64 { return bit(k.Reachable) }),
		gauge("kubernetes_ready", "1 when the API server has listed everything at least once.", nil,
			func(k Kubernetes) float64 { return bit(k.Ready) }),
		gauge("kubernetes_pods", "Pods that the API server listed.", nil,
			func(k Kubernetes) float64 { return float64(k.Pods) }),
		gauge("kubernetes_pods_matched", "Pods that the API server listed and that have control groups.", nil,
			func(k Kubernetes) float64 { return float64(k.Matched) }),
		gauge("kubernetes_rejected", "Fields of annotations, labels and ConfigMaps with invalid values now.", nil,
			func(k Kubernetes) float64 { return float64(k.RejectedNow) }),
		counter("kubernetes_rejected_total", "Fields of annotations, labels and ConfigMaps that could not be taken.",
			nil, func(k Kubernetes) float64 { return float64(k.RejectedTotal) }),
		counter("kubernetes_events_dropped_total",
			"Events on pods and ConfigMaps that were not made, because there were too many.", nil,
			func(k Kubernetes) float64 { return float64(k.EventsDropped) }),
	}
}
