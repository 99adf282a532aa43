package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/discover/kube"
)

// waitCommand is for pods of the chart that have nothing to do but to be there, or to wait for others.
func waitCommand() *cobra.Command {
	var name, kubeconfig string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:    "wait",
		Short:  "Wait for SIGTERM, or until a DaemonSet has a ready pod on each of its nodes (for the chart's hooks)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilAsked(cmd)
			defer stop()
			if name == "" {
				<-ctx.Done()
				return nil
			}
			namespace, daemonSet, ok := strings.Cut(name, "/")
			if !ok {
				return misusef("--for-daemonset: %q is not NAMESPACE/NAME", name)
			}
			api, err := kube.InCluster(kubeconfig, "plimsoll/"+version)
			if err != nil {
				return withHint(err, "outside of a pod, --kubeconfig says where the API server is")
			}
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			return kube.AwaitDaemonSet(ctx, namespace, daemonSet, func(ctx context.Context) (kube.DaemonSet, error) {
				return api.DaemonSet(ctx, namespace, daemonSet)
			}, time.Second)
		},
	}
	cmd.Flags().StringVar(&name, "for-daemonset", "", "NAMESPACE/NAME")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "",
		"a kubeconfig file; without one, the cluster in which this is a pod")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long")
	return cmd
}
