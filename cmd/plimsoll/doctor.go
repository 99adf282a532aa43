package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/doctor"
	"plimsoll/internal/doctor/features"
	"plimsoll/internal/nri"
	"plimsoll/internal/report"
	"plimsoll/internal/schedext/loader"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/task"
)

func doctorCommand(g *globals) *cobra.Command {
	var asJSON bool
	var socket string
	var from source
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this kernel and mount can do, what that means for each policy, and what to do about it",
		Long: `Show what this kernel and mount can do, what that means for each policy, and what to do about it.
What only a write can tell is tried in a cgroup of our own, /plimsoll-probe-PID, which is removed again; no other
cgroup is written.`,
		Example: "  plimsoll doctor\n  plimsoll doctor --config /etc/plimsoll/config.yaml --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var file *config.File
			if from.file != "" {
				var err error
				if file, err = from.load(); err != nil {
					return err
				}
			}
			kernel, err := sysfs.NewHost("/").Release()
			if err != nil {
				return err
			}
			dir := cgroup.NewDir(g.CgroupRoot)
			defer dir.Close()
			found := features.Probe(dir, thisHost(), socket)
			machine := doctor.Priorities(found, &task.Kernel{})
			ext := loader.Preflight()
			machine.SchedExt, machine.SchedExtWhy = ext.Usable, ext.Why
			e := doctor.Examine(version, kernel, g.CgroupRoot, found, machine)
			if file != nil {
				e.Configured = doctor.Judge(file.Node().Colocation, machine)
			}
			e.Runtimes = g.runtimesHere(cmd.Context(), dir, file)
			report.CalledIn(e.Advice, g.flags())
			return errors.Join(show(cmd.OutOrStdout(), e, asJSON), useless(e))
		},
	}
	cmd.Flags().StringVar(&from.file, "config", "", "also judge what this configuration file asks for (colocation)")
	cmd.Flags().StringVar(&socket, "nri-socket", nri.DefaultSocket,
		"where the container runtime listens for NRI plugins")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// useless says why nothing works here; nil: something does.
func useless(e doctor.Report) error {
	why := doctor.Obstacle(e.Features)
	if why == "" {
		return nil
	}
	err := fmt.Errorf("no policy can work at %s: %s", e.Root, why)
	if e.Features.Get(cgroup.FeatureController).State == cgroup.No {
		err = withHint(err, "is --cgroup-root where the control groups are mounted? `mount | grep cgroup` shows it")
	}
	return err
}
