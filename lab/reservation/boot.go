package main

import (
	"context"
	"fmt"
	"time"

	"plimsoll/lab/experiment"
)

// bootPatience is what a virtual machine may take beyond the measurements: it is slow.
const bootPatience = 2 * time.Minute

// boot measures the table of three CPUs in a virtual machine of that many, with this program and the agent in it.
func boot(ctx context.Context, s settings) error {
	vm := experiment.VM{Kernel: "6.12", Cgroup: "v2", CPUs: threeCPUs,
		Span: bootPatience + time.Duration(len(threeCases()))*(s.slot+settle)}
	script := fmt.Sprintf("./reservation -three-here -plimsoll ./plimsoll -seconds %g -reserve=%v -json=%v\n", s.slot.Seconds(), s.reserve, s.json)
	return vm.Run(ctx, "./lab/reservation", script, s.plimsoll)
}
