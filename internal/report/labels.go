package report

import "strings"

// containerLabels are the labels of a container's metrics. `namespace`, `pod` and `container` are spelled as those of cAdvisor
// and kube-state-metrics, so that the series of all of them can be joined. A pod's own series have no container.
func containerLabels() []string {
	return []string{"cgroup", "namespace", "pod", "container", "level", "runtime"}
}

// labels are their values. What is of no pod is its own container: a Docker container, nginx.service, /lab/a.
func (c Container) labels() []string {
	full, container := c.Pod, c.Name
	if c.Level == "pod" {
		full, container = c.Name, ""
	}
	namespace, pod := splitPod(full)
	if namespace != "" {
		container = strings.TrimPrefix(container, full+"/")
	}
	return []string{label(c.Cgroup), label(namespace), label(pod), label(container), label(c.Level), label(c.Runtime)}
}

// splitPod splits "default/web". A group that belongs to no pod is named by its path, and has no namespace.
func splitPod(name string) (namespace, pod string) {
	if namespace, pod, ok := strings.Cut(name, "/"); ok && namespace != "" {
		return namespace, pod
	}
	return "", name
}

// label makes any cgroup name a valid label: names may hold any byte, labels are UTF-8.
func label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
