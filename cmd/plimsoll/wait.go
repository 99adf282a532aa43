package main

import (
	"context"
	"fmt"
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
			return awaitDaemonSet(ctx, func(ctx context.Context) (kube.DaemonSet, error) {
				return api.DaemonSet(ctx, namespace, daemonSet)
			}, time.Second)
		},
	}
	cmd.Flags().StringVar(&name, "for-daemonset", "", "NAMESPACE/NAME")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "a kubeconfig file; without one, the cluster in which this is a pod")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long")
	return cmd
}

// awaitDaemonSet waits until every pod of a DaemonSet is ready. It also waits for an API server that does not answer.
func awaitDaemonSet(ctx context.Context, ask func(context.Context) (kube.DaemonSet, error), every time.Duration) error {
	for {
		d, err := ask(ctx)
		if err == nil && d.Done() {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("ready on %d of %d nodes", d.Ready, d.Desired)
		}
		select {
		case <-ctx.Done():
			return withHint(fmt.Errorf("not all nodes have put everything back: %w (%w)", err, ctx.Err()),
				"`kubectl get pods -l app.kubernetes.io/component=restore -o wide` shows where; `helm uninstall --no-hooks` goes on all the same")
		case <-time.After(every):
		}
	}
}
