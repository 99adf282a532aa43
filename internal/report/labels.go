package report

import (
	"fmt"
	"hash/fnv"
	"strings"

	"plimsoll/internal/printable"
)

// containerLabels are the labels of a container's metrics. `namespace`, `pod` and `container` are spelled as those of
// cAdvisor and kube-state-metrics, so that the series of all of them can be joined. A pod's own series have no
// container.
func containerLabels() []string {
	return []string{"cgroup", "namespace", "pod", "container", "level", "runtime"}
}

// labels are their values.
func (c Container) labels() []string {
	namespace, pod, container := c.Names()
	return []string{label(c.Cgroup), label(namespace), label(pod), label(container), label(c.Level), label(c.Runtime)}
}

// Names are those of the namespace, the pod and the container. What is of no pod is its own container: a Docker
// container, nginx.service, /lab/a.
func (c Container) Names() (namespace, pod, container string) {
	full := c.Pod
	container = c.Name
	if c.Level == "pod" {
		full, container = c.Name, ""
	}
	namespace, pod = splitPod(full)
	if namespace != "" {
		container = strings.TrimPrefix(container, full+"/")
	}
	return namespace, pod, container
}

// splitPod splits "default/web". A group that belongs to no pod is named by its path, and has no namespace.
func splitPod(name string) (namespace, pod string) {
	if namespace, pod, ok := strings.Cut(name, "/"); ok && namespace != "" {
		return namespace, pod
	}
	return "", name
}

// longestLabel is room for the path of any container of Kubernetes, and for the longest name of a pod (253 bytes).
const longestLabel = 256

// label makes any name a label. Anybody who may make control groups chooses names of any byte and of up to 4096 of
// them. Two long names that begin alike differ in their sum: two series with the same labels would spoil the whole
// scrape.
func label(s string) string {
	if text := printable.Text(s); len(text) <= longestLabel {
		return text
	}
	sum := fnv.New64a()
	sum.Write([]byte(s)) // never fails
	end := fmt.Sprintf("...%016x", sum.Sum64())
	return strings.TrimSuffix(printable.Excerpt(s, longestLabel-len(end)+3), "...") + end
}
