// Command kubernetes is kube-apiserver, kubelet, kubectl, etcd, kube-scheduler and kube-controller-manager in one
// binary, picked by the name it is called by. One link step instead of six keeps the build at a few minutes.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	servers := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllers.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 kubelet.NewKubeletCommand,
	}
	switch name := filepath.Base(os.Args[0]); {
	case servers[name] != nil:
		os.Exit(cli.Run(servers[name]()))
	case name == "kubectl":
		if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
	case name == "etcd":
		etcdmain.Main(os.Args)
	default:
		fmt.Fprintf(os.Stderr, "%s: hint: link this to kube-apiserver, kubelet, kubectl, etcd, kube-scheduler or "+
			"kube-controller-manager\n", name)
		os.Exit(2)
	}
}
