// Command controlplane is the control plane of the tests and the demo in one
// binary: etcd, kube-apiserver, kube-controller-manager and an OCI registry.
// The component is chosen by the name it is invoked as (argv[0]), so the owner
// creates one symbolic link per component. One binary links the shared
// Kubernetes packages once, which keeps its build and its size small.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/auth/token"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "registry":
		if err := registry.RootCmd.Execute(); err != nil {
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "invoke this binary as etcd, kube-apiserver, kube-controller-manager or registry")
		os.Exit(2)
	}
}
