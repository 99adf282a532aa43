package main

import (
	"plimsoll/internal/config"
	"plimsoll/internal/exclusive"
	"plimsoll/internal/host"
	"plimsoll/internal/kubelet"
	"plimsoll/internal/sysfs"
)

// reserving are the facts about this machine that the agent needs to give containers exclusive CPUs.
func reserving(file *config.File) exclusive.Options {
	k, h := kubelet.OfHost(), sysfs.NewHost("/")
	return exclusive.Options{Topology: (&host.Layout{Host: h}).Topology, Owner: k.Owner, Kept: k.Reserved,
		Isolated: h.Isolated(), Rules: file.Reserve()}
}
