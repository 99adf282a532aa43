// Package nri subscribes to resizes at the container runtime.
// Before a resize the agent puts bursts and raised quotas back.
//
// # Problem
//
// The kernel refuses a quota below the burst, so a resize in place of a container that has a burst fails until the
// burst is lowered, and the kubelet does not try again for a pod's group. The API server announces a resize to the
// agent at the same time as to the kubelet, which may be too late.
//
// # Approach
//
// NRI, the runtimes' interface for plugins (github.com/containerd/nri), calls the plugin before the runtime writes. The
// plugin never writes: the agent is the only writer. The agent has 50 ms to put the pod back to its limits. Then the
// plugin answers in any case, so that no pod is ever delayed. The plugin changes nothing of the resize.
//
// When the runtime ends or closes the connection, the plugin connects again: after half a second, and then less and
// less often.
//
// # Known limits
//
// The kubelet writes a pod's group itself. Up to Kubernetes 1.34 it calls the runtime afterwards. When containers are
// made smaller, it writes the pod's group last, so the pod is at its limit by then. 1.36 and later call the runtime
// before the write, and again with the value in force where the write failed (kuberuntime_manager.go,
// setPodCgroupConfig).
package nri
