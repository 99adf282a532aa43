package main

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
	return map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}
}

// kinds are the kinds of the resources that the agent reads.
func kinds() map[string]string {
	return map[string]string{"pods": "Pod", "nodes": "Node", "configmaps": "ConfigMap"}
}

func (m milli) resources() resources {
	return resources{Limits: map[string]string{"cpu": fmt.Sprintf("%dm", m)}, Requests: map[string]string{"cpu": "1m"}}
}

// object is the pod as the API server has it. The annotation asks for all that the agent can do.
func (p *pod) object(node string) object {
	spec, status := &podSpec{NodeName: node}, &podStatus{Phase: "Running"}
	for _, c := range p.containers {
		spec.Containers = append(spec.Containers, containerSpec{c.name, c.spec.resources()})
		if c.id != "" {
			status.Containers = append(status.Containers, containerStatus{c.name, "containerd://" + c.id, true, c.confirmed.resources()})
		}
	}
	annotations := map[string]string{"koordinator.sh/cpuBurst": `{"policy": "auto"}`}
	return object{Kind: "Pod", APIVersion: "v1", Metadata: meta{Namespace: "soak", Name: p.name, UID: p.uid, Annotations: annotations},
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
