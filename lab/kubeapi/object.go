package kubeapi

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// The objects of the API server, with the fields that the agent reads.

type meta struct {
	Namespace       string            `json:"namespace,omitempty"`
	Name            string            `json:"name,omitempty"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

type object struct {
	Kind       string     `json:"kind"`
	APIVersion string     `json:"apiVersion"`
	Metadata   meta       `json:"metadata"`
	Spec       *podSpec   `json:"spec,omitempty"`
	Status     *podStatus `json:"status,omitempty"`
	Items      *[]object  `json:"items,omitempty"`
}

type podSpec struct {
	NodeName   string          `json:"nodeName"`
	Containers []containerSpec `json:"containers"`
}

type containerSpec struct {
	Name      string    `json:"name"`
	Resources resources `json:"resources"`
}

type podStatus struct {
	Phase      string            `json:"phase"`
	Containers []containerStatus `json:"containerStatuses"`
}

type containerStatus struct {
	Name        string    `json:"name"`
	ContainerID string    `json:"containerID"`
	Ready       bool      `json:"ready"`
	Resources   resources `json:"resources"`
}

type resources struct {
	Limits   map[string]string `json:"limits"`
	Requests map[string]string `json:"requests"`
}

// failure is the Status object that the API server answers a request with that it does not carry out.
func failure(code int, reason, message string) map[string]any {
	return map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
		"message": message}
}

// kinds are the kinds of the resources that the agent reads.
func kinds() map[string]string {
	return map[string]string{"pods": "Pod", "nodes": "Node", "configmaps": "ConfigMap"}
}

// Pod is a pod of the node.
type Pod struct {
	Namespace, Name, UID string
	Annotations          map[string]string
	Containers           []Container
}

// Container is one of a pod, with its limit in thousandths of a CPU: what is to be, and what is in force. It runs where
// it has an id.
type Container struct {
	Name, ID         string
	Limit, Confirmed int
}

func limited(milli int) resources {
	return resources{Limits: map[string]string{"cpu": fmt.Sprintf("%dm", milli)},
		Requests: map[string]string{"cpu": "1m"}}
}

func (p Pod) object(node string) object {
	spec, status := &podSpec{NodeName: node}, &podStatus{Phase: "Running"}
	for _, c := range p.Containers {
		spec.Containers = append(spec.Containers, containerSpec{c.Name, limited(c.Limit)})
		if c.ID != "" {
			status.Containers = append(status.Containers,
				containerStatus{c.Name, "containerd://" + c.ID, true, limited(c.Confirmed)})
		}
	}
	return object{Kind: "Pod", APIVersion: "v1", Metadata: meta{Namespace: p.Namespace, Name: p.Name, UID: p.UID,
		Annotations: p.Annotations},
		Spec: spec, Status: status}
}

// at is the object at a version.
func (o object) at(version int64) object {
	o.Metadata.ResourceVersion = strconv.FormatInt(version, 10)
	return o
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and maps of them
	}
	return data
}
