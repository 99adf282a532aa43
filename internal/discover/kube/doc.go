// Package kube knows what Kubernetes says about the containers of one node, and lays it over what cgroupfs finds. It is
// the only package that knows pods, ConfigMaps and client-go.
//
// # Problem
//
// The control groups tell at once that a container is there, but not whose it is, which limit was asked for, or what its
// pod's annotation says. The API server tells all that, but late: a container's id is in the pod's status seconds after its
// first task. And the API server may be away, for as long as it likes.
//
// # Approach
//
// Neither waits for the other. A cgroupfs.Scanner finds the groups, and a Discoverer lays over them what it knows by the
// pod's UID, which the path of the group has, and which the API server tells when the pod is bound to the node, before the
// kubelet makes a group for it. So a container gets its pod's strategy with its first task; its name, its request and its
// declared limit follow when the status has its id. A pod that the API server has not told of gets policy none: its class,
// and so whether it may be burst at all, is not known.
//
// What is known of the API server is a reflector a resource into a store that keeps the few fields that are needed
// (pods of this node, this node, the named ConfigMaps), each with one list and one watch. When the API server goes away
// what it said last stands. Of a text that cannot be read the last good one stands (package config), and an Event on the
// object says why.
//
// A limit is the one that the kubelet writes (pkg/kubelet/cm, ResourceConfigForPod and MilliCPUToQuota), over the period that
// the group really has, and none where the group has no quota: cpuCFSQuota is off, or the container has CPUs of its own.
//
// # Resize in place
//
// The kernel refuses a quota below the burst, and on v1 one of a pod below that of a container of it. So a pod of which a
// container is to have another limit is held at its limits, without bursts, from the moment in which its spec says so until
// the status agrees, which declares the new limit: the group may hold that value as a raise of the agent's own. A size that
// the kubelet has put off, or refused, does not count.
//
// # Known limits
//
// Between the kubelet's write and the spec's watch event there may be a moment: a resize down meets the burst, the runtime's
// write fails once, and the kubelet tries again (package nri prevents it). An Event is made once for an object, a reason and a
// message, by any number of nodes; it is not made again while it lives.
package kube
