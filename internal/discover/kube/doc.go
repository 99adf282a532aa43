// Package kube adds what Kubernetes says about the containers of one node to what cgroupfs finds. It is
// the only package that knows pods, ConfigMaps and client-go.
//
// # Problem
//
// The control groups show at once that a container exists. They do not show its pod, its declared limit, or
// its pod's annotation. The API server has all that, but late: a container's id is in the pod's status seconds after
// its first task. And the API server may be away for any time.
//
// # Approach
//
// Neither waits for the other. A cgroupfs.Scanner finds the groups. A Discoverer joins them with pods by the pod's UID,
// which is in the path of the group. The API server sends the UID when the pod is bound to the node, before the kubelet
// makes a group for it. So a container gets its pod's strategy with its first task; its name, its request and its
// declared limit follow when the status has its id. A pod that the API server has not sent gets policy none: its class,
// and so whether it may be burst at all, is not known.
//
// For each resource a reflector fills a store that keeps the few fields that are needed (pods of this node, this node,
// the named ConfigMaps), each with one list and one watch. When the API server goes away its last answers stay valid.
// Of a text that cannot be read the last good one stays valid (package config), and an Event on the object says why.
//
// A limit is the one that the kubelet writes (pkg/kubelet/cm, ResourceConfigForPod and MilliCPUToQuota), over the
// period that the group really has, and none where the group has no quota: cpuCFSQuota is off,
// or the container has exclusive CPUs.
//
// # Resize in place
//
// The kernel refuses a quota below the burst, and on v1 a pod's quota below that of one of its containers. So a pod
// with a container that is resized stays at its limits, without bursts, from the change of its spec until the status
// confirms the resize. Only the status declares the new limit: the same value in the group may be a raise by the agent.
// The limit that a pod has for all its containers together is read back from the group by the kubelet itself: ownLimit.
// A size that the kubelet has deferred or refused does not count.
//
// # Known limits
//
// Between the kubelet's write and the spec's watch event there may be a moment: a resize down meets the burst, the
// runtime's write fails once, and the kubelet tries again (package nri prevents it). An Event is made once for an
// object, a reason and a message, by any number of nodes; it is not made again while it lives.
package kube
