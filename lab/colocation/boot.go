package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"plimsoll/lab/experiment"
)

const (
	guestMemory  = 2048 // MiB: the programs' libraries are large, and the guest has no disk
	bootPatience = 4 * time.Minute
	guestSlow    = 30 * time.Second // what a slot takes beside its load
)

// boot runs the experiment in a virtual machine with another kernel.
func boot(ctx context.Context, s *settings, kernel string) error {
	slots := time.Duration(s.rounds * len(allRows()))
	vm := experiment.VM{Kernel: kernel, Cgroup: "v2", CPUs: runtime.NumCPU(), Memory: guestMemory, Programs: []string{"nginx", "ffmpeg"},
		Span: bootPatience + slots*(s.perRow/time.Duration(s.rounds)+guestSlow)}
	script := "mkdir -p /var/log/nginx /var/lib/nginx\n" +
		fmt.Sprintf("./colocation -emulated -plimsoll ./plimsoll -seconds %g -rounds %d -rate %g -seed %d -json=%v -rows '%s'",
			s.perRow.Seconds(), s.rounds, s.rate, s.seed, s.JSON, s.names)
	return vm.Run(ctx, "./lab/colocation", script, s.Plimsoll)
}
