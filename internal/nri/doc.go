// Package nri hears from the container runtime that a limit is about to be changed, and has the agent prepare for it.
//
// # Problem
//
// The kernel refuses a quota below the burst, so a resize in place of a container that has a burst fails until the burst is
// lowered, and the kubelet does not try again for a pod's group. What the API server tells of a resize comes at the same
// time as to the kubelet, and may come too late.
//
// # Approach
//
// NRI, the runtimes' interface for plugins (github.com/containerd/nri), asks before the runtime writes. The plugin never
// writes: the agent is the only writer. It has 50 ms to put the pod back to its limits; the runtime is answered then in any
// case, so that no pod is ever delayed. Nothing that the runtime wants is changed.
//
// A runtime that ends, or closes the plugin, is connected to again: after half a second, and then ever more rarely.
//
// # Known limits
//
// The kubelet writes a pod's group itself. Up to Kubernetes 1.34 it tells the runtime afterwards; of containers that
// are made smaller it writes the pod's group last, so the pod is at its limit by then. 1.36 and later tell the
// runtime before the write, and of the value that stands once more where the write failed (kuberuntime_manager.go,
// setPodCgroupConfig).
package nri
