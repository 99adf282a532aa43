package main

import (
	"context"
	"fmt"
	"time"

	"plimsoll/lab/experiment"
)

const (
	bootPatience = 3 * time.Minute  // what a virtual machine may take beyond the measurements
	guestSlow    = 20 * time.Second // what a situation takes there beside its measurements
	guestKernel  = "6.12"
)

// bootThree measures the table of three CPUs in a virtual machine of that many, with this program and the agent in it.
func bootThree(ctx context.Context, s *settings) error {
	vm := experiment.VM{Kernel: guestKernel, Cgroup: "v2", CPUs: publishedCPUs, AtOnce: true,
		Span: bootPatience + time.Duration(len(tableCases(publishedCPUs)))*(s.slot+afterChange)}
	script := fmt.Sprintf("./reservation -table -plimsoll ./plimsoll -seconds %g -reserve=%v -json=%v", s.slot.Seconds(), s.reserve, s.JSON)
	return vm.Run(ctx, "./lab/reservation", script, s.Plimsoll)
}

// boot measures the situations in a virtual machine of more CPUs than this one has, for what the target receives.
func boot(ctx context.Context, s *settings) error {
	slots := time.Duration(s.repeat * len(situations(s.vm, s.sweep, s.reserve)))
	vm := experiment.VM{Kernel: guestKernel, Cgroup: "v2", CPUs: s.vm, AtOnce: true, Programs: []string{"memcached", "stress-ng"},
		Span: bootPatience + slots*(4*s.slot+guestSlow)}
	script := fmt.Sprintf("./reservation -emulated -plimsoll ./plimsoll -seconds %g -rounds %d -rate %d -search=false -sweep=%v -reserve=%v -diagnose=%v -seed %d -json=%v -only '%s'",
		s.slot.Seconds(), s.repeat, guestRate, s.sweep, s.reserve, s.split, s.seed, s.JSON, s.only)
	return vm.Run(ctx, "./lab/reservation", script, s.Plimsoll)
}

// guestRate is a load that emulated CPUs can bear.
const guestRate = 100
