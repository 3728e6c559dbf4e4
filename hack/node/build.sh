#!/usr/bin/env bash
# Builds the programs of the node into DIR:
#   hack/node/build.sh DIR
# etcd, kube-apiserver, kube-controller-manager and the registry come from hack/controlplane, or from KUBEBUILDER_ASSETS;
# kube-scheduler, kubelet and kube-proxy from the same module, so that both builds share Go's cache.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
version=v1.36.3
# kubectl and version checks parse the reported version, so the build sets it.
variables=k8s.io/component-base/version
ldflags="-s -w -X $variables.gitVersion=$version -X $variables.gitMajor=1 -X $variables.gitMinor=36"

# No -trimpath: it would not share the cache with other builds of these modules on the machine.
build() {
  local module=$1
  shift
  echo "node: building $module (minutes the first time, then cached)" >&2
  (cd "$here/$module" && nice -n 10 go build -buildvcs=false "$@")
}

components=(etcd kube-apiserver kube-controller-manager registry)
if [ -x "${KUBEBUILDER_ASSETS:-}/registry" ]; then
  for name in "${components[@]}"; do
    ln -sfn "$KUBEBUILDER_ASSETS/$name" "$dir/$name"
  done
else
  build ../controlplane -ldflags "$ldflags" -o "$dir/controlplane" .
  for name in "${components[@]}"; do
    ln -sfn controlplane "$dir/$name"
  done
fi
build ../controlplane -ldflags "$ldflags" -o "$dir/node" ./node
for name in kube-scheduler kubelet kube-proxy; do
  ln -sfn node "$dir/$name"
done
build containerd -ldflags '-s -w' -tags 'no_btrfs no_zfs no_devmapper no_aufs' -o "$dir/" \
  github.com/containerd/containerd/v2/cmd/containerd github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2
CGO_ENABLED=0 build coredns -ldflags '-s -w' -o "$dir/coredns" .
# Kubernetes' own pause, the process that holds the namespaces of a pod.
pause=$(cd "$here/../controlplane" && go list -m -f '{{.Dir}}' k8s.io/kubernetes)/build/pause/linux/pause.c
cc -Os -static "-DVERSION=$version" -o "$dir/pause" "$pause"
