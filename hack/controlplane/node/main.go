// Command node is the Kubernetes part of a node in one binary: kube-scheduler,
// kubelet and kube-proxy. The component is chosen by the name it is invoked as
// (argv[0]). The command belongs to the module of the control plane, so both
// builds share one set of compiled Kubernetes packages.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kube-proxy":
		os.Exit(cli.Run(proxy.NewProxyCommand()))
	case "kubelet":
		os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background())))
	default:
		fmt.Fprintln(os.Stderr, "invoke this binary as kube-scheduler, kube-proxy or kubelet")
		os.Exit(2)
	}
}
