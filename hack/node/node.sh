#!/usr/bin/env bash
# A Kubernetes cluster of one real node on this machine, in namespaces of its own, for `make test-node`. Linux and root only.
#   hack/node/node.sh supported    prints the reason if the node cannot run here
#   hack/node/node.sh up           builds and starts the node, and waits until its DNS answers
#   hack/node/node.sh enter CMD    runs CMD inside: names and addresses of Services work there, and kubectl has its kubeconfig
#   hack/node/node.sh down         ends all processes and removes their state
# Files are in NODE_DIR (target/node by default): bin/ has the programs, run/ the state, run/logs/ the logs.
#
# Everything from etcd to the pods runs in new mount, network, process, IPC, host name and cgroup namespaces, so the machine's
# firewall, routes, sysctls and /run stay as they are, and the end of the first process ends all others. The node has no way out
# of its network namespace: images come from its own registry, registry.registry.svc:5000.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/certificate.sh"
target=${CARGO_TARGET_DIR:-$here/../../target}
mkdir -p "${NODE_DIR:-$target/node}"
dir=$(cd "${NODE_DIR:-$target/node}" && pwd)
export BIN=$dir/bin RUN=$dir/run NODE_IP=10.29.0.2
export PKI=$RUN/pki
cgroups=/sys/fs/cgroup
# One cgroup for each NODE_DIR, so that several nodes run side by side.
cgroup=olm-node-$(echo "$dir" | cksum | cut -d ' ' -f 1)
# Version of the machine's cgroups, and the folders in which the node has a cgroup: one for each hierarchy.
if [ -f $cgroups/cgroup.controllers ]; then
  export CGROUP_VERSION=2
  hierarchies=("$cgroups")
else
  export CGROUP_VERSION=1
  hierarchies=("$cgroups"/{cpu,cpuacct,cpuset,memory,devices,freezer,blkio,pids,systemd})
fi

fail() { echo "node: $*" >&2; exit 1; }

supported() {
  [ "$(uname -s)" = Linux ] || { echo "not Linux"; return 1; }
  [ "$(id -u)" = 0 ] || { echo "not root"; return 1; }
  unshare --mount --net --pid --ipc --uts --cgroup --fork true 2>/dev/null || { echo "namespaces are not permitted"; return 1; }
  local name
  for name in cpu cpuset memory pids; do
    has_controller "$name" || { echo "the cgroup controller $name is missing at $cgroups, or not delegated"; return 1; }
  done
  for name in kubectl nsenter; do
    command -v "$name" >/dev/null || { echo "no $name on the PATH"; return 1; }
  done
}

# has_controller NAME: the node's cgroup can have this controller. Only the root cgroup, which has no type, may pass
# controllers on while it has processes.
has_controller() {
  if [ $CGROUP_VERSION = 1 ]; then
    [ -d "$cgroups/$1" ]
  elif [ -f $cgroups/cgroup.type ]; then
    grep -qw "$1" $cgroups/cgroup.subtree_control
  else
    grep -qw "$1" $cgroups/cgroup.controllers
  fi
}

credentials() {
  mkdir -p "$PKI"
  chmod 700 "$PKI"
  openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/ca.key"
  openssl req -x509 -new -key "$PKI/ca.key" -subj /CN=node-tests -days 30 -out "$PKI/ca.crt" \
    -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature
  local names=DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.96.0.1,IP:$NODE_IP
  certificate apiserver /CN=kube-apiserver "subjectAltName=$names"
  certificate registry /CN=registry "subjectAltName=DNS:registry.registry.svc,IP:$NODE_IP"
  certificate kubelet-client /O=system:masters/CN=apiserver extendedKeyUsage=clientAuth
  openssl genrsa -out "$PKI/service-accounts.key" 2048 2>/dev/null
  openssl rsa -in "$PKI/service-accounts.key" -pubout -out "$PKI/service-accounts.pub" 2>/dev/null
  kubeconfig admin admin system:masters
  kubeconfig kube-controller-manager system:kube-controller-manager
  kubeconfig kube-scheduler system:kube-scheduler
  kubeconfig kube-proxy system:kube-proxy
  kubeconfig kubelet system:node:node system:nodes
}

# kubeconfig FILE USER [GROUP]: a kubeconfig with a token of its own.
kubeconfig() {
  local token
  token=$(openssl rand -hex 16)
  echo "$token,$2,$2,\"${3:-}\"" >> "$PKI/tokens.csv"
  cat > "$RUN/$1.kubeconfig" <<EOF
apiVersion: v1
kind: Config
current-context: node
clusters:
- {name: node, cluster: {server: "https://127.0.0.1:6443", certificate-authority: $PKI/ca.crt}}
users:
- {name: user, user: {token: $token}}
contexts:
- {name: node, context: {cluster: node, user: user}}
EOF
}

running() { [ -s "$RUN/init.pid" ] && kill -0 "$(cat "$RUN/init.pid")" 2>/dev/null; }

enter() {
  running || fail "the node is not up"
  KUBECONFIG=$RUN/admin.kubeconfig nsenter --target "$(cat "$RUN/init.pid")" --mount --net --pid --ipc --uts --cgroup -- \
    env --chdir="$PWD" "$@"
}

# until_ok SECONDS CMD...
until_ok() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "timed out: $*; see $RUN/logs"
    sleep 0.2
  done
}

up() {
  local why
  why=$(supported) || fail "$why"
  ! running || fail "already up"
  why=$("$here/packages.sh") || fail "$why"
  "$here/build.sh" "$BIN"
  down
  mkdir -p "$RUN/logs"
  credentials
  make_cgroups
  (
    for hierarchy in "${hierarchies[@]}"; do
      [ ! -d "$hierarchy/$cgroup" ] || echo "$BASHPID" > "$hierarchy/$cgroup/cgroup.procs"
    done
    exec setsid unshare --mount --net --pid --ipc --uts --cgroup --fork --kill-child "$here/init.sh" \
      > "$RUN/logs/init.log" 2>&1 < /dev/null
  ) &
  echo $! > "$RUN/unshare.pid"
  until_ok 10 pgrep --parent "$(cat "$RUN/unshare.pid")"
  pgrep --parent "$(cat "$RUN/unshare.pid")" > "$RUN/init.pid"
  if [ $CGROUP_VERSION = 2 ]; then
    # A cgroup of version 2 that has processes cannot pass its controllers on; init.sh waits for this.
    mkdir "$cgroups/$cgroup/outside"
    cat "$RUN/unshare.pid" > "$cgroups/$cgroup/outside/cgroup.procs"
  fi
  until_ok 90 enter kubectl get --raw /readyz
  local image
  for image in pause coredns; do push "$image"; done
  sed "s/REGISTRY_IP/$NODE_IP/" "$here/registry.yaml" > "$RUN/registry-service.yaml"
  enter kubectl apply --server-side -f "$here/cluster.yaml" -f "$RUN/registry-service.yaml" > "$RUN/logs/cluster.log"
  until_ok 90 enter kubectl wait --for=condition=Ready node/node --timeout=1s
  until_ok 90 enter kubectl -n kube-system rollout status deployment/coredns --timeout=1s
}

# Creates the node's cgroups.
make_cgroups() {
  local hierarchy
  if [ $CGROUP_VERSION = 2 ]; then
    sed 's/[^ ]*/+&/g' $cgroups/cgroup.controllers > $cgroups/cgroup.subtree_control 2>/dev/null || true
    mkdir "$cgroups/$cgroup"
    return
  fi
  for hierarchy in "${hierarchies[@]}"; do
    [ ! -d "$hierarchy" ] || mkdir "$hierarchy/$cgroup"
  done
  cat $cgroups/cpuset/cpuset.cpus > "$cgroups/cpuset/$cgroup/cpuset.cpus"
  cat $cgroups/cpuset/cpuset.mems > "$cgroups/cpuset/$cgroup/cpuset.mems"
}

# push NAME: pushes a program as an image to the node's registry.
push() {
  [ -n "${DEBUG_BINARIES:-}" ] || (cd "$here/../.." && cargo build --quiet --locked -p olm-harness --bin image)
  # The registry may come up after the API server.
  until_ok 30 enter "$target/debug/image" "$1" "$BIN/$1" "$NODE_IP:5000/node/$1:dev" --plain-http
}

down() {
  local pid end
  if [ -s "$RUN/unshare.pid" ]; then
    pid=$(cat "$RUN/unshare.pid")
    # --kill-child ends the first process of the namespace, and with it all others.
    kill -9 "$pid" 2>/dev/null || true
    end=$((SECONDS + 10))
    while kill -0 "$pid" 2>/dev/null && [ $SECONDS -lt $end ]; do sleep 0.1; done
  fi
  local hierarchy
  for hierarchy in "${hierarchies[@]}"; do
    end=$((SECONDS + 10))
    while [ -d "$hierarchy/$cgroup" ]; do
      find "$hierarchy/$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || true
      [ $SECONDS -lt $end ] || fail "a cgroup is left: $hierarchy/$cgroup"
      sleep 0.1
    done
  done
  rm -rf "$RUN"
}

command=${1:-}
shift || true
case $command in
  supported | up | down) "$command" ;;
  enter) enter "$@" ;;
  *) sed -n '2,7p' "$0" | sed 's/^# \?//' >&2; exit 2 ;;
esac
