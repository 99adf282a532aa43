package report

import "fmt"

// Kubernetes is how it stands with the API server.
type Kubernetes struct {
	Node      string `json:"node"`
	Reachable bool   `json:"reachable"`
	Fault     string `json:"error,omitempty"` // why it is not
	Ready     bool   `json:"ready"`           // everything was told at least once: until then no pod is burst
	Pods      int    `json:"pods"`            // that the API server told of
	Matched   int    `json:"pods_matched"`    // of these, those with control groups
	Rejected  int64  `json:"rejected"`        // fields of configuration that could not be taken, since the start
}

// line is "the API server answers; it told of 12 pods of node n1, 11 have groups".
func (k Kubernetes) line() string {
	line := "the API server answers"
	if !k.Reachable {
		line = "the API server does not answer"
		if k.Fault != "" {
			line += " (" + k.Fault + ")"
		}
	}
	if !k.Ready {
		return line + "; it has not told everything yet, and no pod is burst"
	}
	line += fmt.Sprintf("; it told of %d pods of node %s, %d have groups", k.Pods, k.Node, k.Matched)
	if k.Rejected > 0 {
		line += fmt.Sprintf("; %d fields of configuration rejected", k.Rejected)
	}
	return line
}

func kubernetesMetrics() []metric[Kubernetes] {
	return []metric[Kubernetes]{
		gauge("kubernetes_reachable", "1 while the API server answers.", nil, func(k Kubernetes) float64 { return bit(k.Reachable) }),
		gauge("kubernetes_ready", "1 when the API server has told everything at least once.", nil, func(k Kubernetes) float64 { return bit(k.Ready) }),
		gauge("kubernetes_pods", "Pods that the API server told of.", nil, func(k Kubernetes) float64 { return float64(k.Pods) }),
		gauge("kubernetes_pods_matched", "Pods that the API server told of and that have control groups.", nil, func(k Kubernetes) float64 { return float64(k.Matched) }),
		counter("kubernetes_rejected_total", "Fields of annotations and ConfigMaps that could not be taken.", nil, func(k Kubernetes) float64 { return float64(k.Rejected) }),
	}
}
