#!/usr/bin/env bash
# First process of the node's namespaces, started by node.sh: mounts, network, and every component of the cluster.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# start NAME CMD...: in the background, with a log of its own.
start() {
  local name=$1
  shift
  setsid "$@" > "$RUN/logs/$name.log" 2>&1 < /dev/null &
}

until_ok() {
  local end=$((SECONDS + 60))
  until "$@" > /dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "timed out: $*" >&2; exit 1; }
    sleep 0.1
  done
}

# Version 2 of cgroups: gives the controllers to the cgroups of the pods.
pass_controllers_on() {
  sed 's/[^ ]*/+&/g' /sys/fs/cgroup/cgroup.controllers > /sys/fs/cgroup/cgroup.subtree_control
}

hostname node
mount --make-rprivate /
mount -t proc proc /proc
mount -t sysfs sysfs /sys
if [ "$CGROUP_VERSION" = 2 ]; then
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  mkdir /sys/fs/cgroup/init
  echo 0 > /sys/fs/cgroup/init/cgroup.procs
  until_ok pass_controllers_on
else
  mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
  for controller in cpu cpuacct cpuset memory devices freezer blkio pids; do
    mkdir "/sys/fs/cgroup/$controller"
    mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller"
  done
  mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
fi
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/lock /run/netns
for folder in /var/lib/kubelet /var/lib/containerd /var/lib/cni /var/log/pods /var/log/containers /etc/cni /etc/containerd; do
  mkdir -p "$RUN/fs$folder" "$folder"
  mount --bind "$RUN/fs$folder" "$folder"
done
# The kubelet requires these settings of the kernel. Files over them satisfy it and leave the machine's as they are.
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1; do
  file=$RUN/sysctl/${setting%=*}
  mkdir -p "${file%/*}"
  echo "${setting#*=}" > "$file"
  mount --bind "$file" "/proc/sys/${setting%=*}"
done
# Names of Services resolve for programs that enter the node.
printf 'search svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n' > "$RUN/resolv.conf"
mount --bind "$RUN/resolv.conf" "$(readlink -f /etc/resolv.conf)"
# The kubelet hands its own resolv.conf to pods with dnsPolicy Default: there is no DNS outside.
echo 'nameserver 127.0.0.1' > "$RUN/pods-resolv.conf"
mount --make-rshared /

ip link set lo up
ip link add node0 type veth peer name node0-peer
ip address add "$NODE_IP/24" dev node0
ip link set node0 up
ip link set node0-peer up
# kube-proxy translates addresses of Services on their way out, so the node needs a route for them.
ip route add 10.96.0.0/16 dev node0 src "$NODE_IP"
echo 1 > /proc/sys/net/ipv4/ip_forward

start etcd "$BIN/etcd" --data-dir "$RUN/etcd" --unsafe-no-fsync --log-level warn

# registry NAME PORT [TLS] [AUTH]: serves the node's images.
registry() {
  cat > "$RUN/$1.yaml" <<EOF
version: 0.1
log: {level: warn}
storage: {filesystem: {rootdirectory: $RUN/registry}, delete: {enabled: true}}
http: {addr: ":$2"${3:-}}
${4:-}
EOF
  OTEL_TRACES_EXPORTER=none start "$1" "$BIN/registry" serve "$RUN/$1.yaml"
}
tls=", tls: {certificate: $PKI/registry.crt, key: $PKI/registry.key}"
registry registry 5000
registry registry-https 5443 "$tls"
registry registry-private 5444 "$tls" "auth: {htpasswd: {realm: private, path: $here/htpasswd}}"

start kube-apiserver "$BIN/kube-apiserver" --etcd-servers http://127.0.0.1:2379 --secure-port 6443 --advertise-address "$NODE_IP" \
  --allow-privileged --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
  --service-cluster-ip-range 10.96.0.0/16 --client-ca-file "$PKI/ca.crt" --token-auth-file "$PKI/tokens.csv" \
  --tls-cert-file "$PKI/apiserver.crt" --tls-private-key-file "$PKI/apiserver.key" \
  --kubelet-client-certificate "$PKI/kubelet-client.crt" --kubelet-client-key "$PKI/kubelet-client.key" \
  --kubelet-preferred-address-types InternalIP --service-account-issuer https://kubernetes.default.svc \
  --service-account-key-file "$PKI/service-accounts.pub" --service-account-signing-key-file "$PKI/service-accounts.key" \
  --audit-policy-file "$here/audit.yaml" --audit-log-path "$RUN/logs/audit.log"

mkdir -p /etc/cni/net.d /etc/containerd/certs.d/registry.registry.svc:{5000,5443}
# ptp and not bridge: on a bridge, answers of a pod to a pod behind a Service bypass the translation of addresses.
cat > /etc/cni/net.d/10-node.conflist <<'EOF'
{"cniVersion": "0.4.0", "name": "node", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "/run/cni-addresses",
    "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "10.244.0.0/24"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
EOF
cat > "/etc/containerd/certs.d/registry.registry.svc:5000/hosts.toml" <<EOF
server = "http://$NODE_IP:5000"
EOF
cat > "/etc/containerd/certs.d/registry.registry.svc:5443/hosts.toml" <<EOF
server = "https://$NODE_IP:5443"
ca = "$PKI/ca.crt"
EOF
# Without CAP_SYS_RESOURCE runc cannot lower the OOM score.
cat > "$RUN/containerd.toml" <<'EOF'
version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "registry.registry.svc:5000/node/pause:dev"
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "/etc/containerd/certs.d"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/usr/lib/cni", "/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
EOF
# containerd finds its shim on the PATH.
PATH=$BIN:$PATH start containerd "$BIN/containerd" --config "$RUN/containerd.toml"

until_ok kubectl --kubeconfig "$RUN/admin.kubeconfig" get --raw /readyz
start kube-controller-manager "$BIN/kube-controller-manager" --kubeconfig "$RUN/kube-controller-manager.kubeconfig" \
  --bind-address 127.0.0.1 --leader-elect=false --use-service-account-credentials --root-ca-file "$PKI/ca.crt" \
  --service-account-private-key-file "$PKI/service-accounts.key" --kube-api-qps 300 --kube-api-burst 600
start kube-scheduler "$BIN/kube-scheduler" --kubeconfig "$RUN/kube-scheduler.kubeconfig" --bind-address 127.0.0.1 \
  --leader-elect=false
# oomScoreAdj 0: lowering it needs CAP_SYS_RESOURCE.
# The disk is the machine's, so a part of its size says nothing of this node: one percent of a large disk is more than all that the
# node stores, and its pods would be evicted beside a large target directory.
cat > "$RUN/kubelet.yaml" <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
resolvConf: $RUN/pods-resolv.conf
oomScoreAdj: 0
failSwapOn: false
protectKernelDefaults: true
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi, nodefs.available: 100Mi, imagefs.available: 100Mi}
EOF
until_ok test -S /run/containerd/containerd.sock
start kubelet "$BIN/kubelet" --config "$RUN/kubelet.yaml" --kubeconfig "$RUN/kubelet.kubeconfig" --node-ip "$NODE_IP" \
  --hostname-override node
# nf_conntrack_max belongs to the machine.
cat > "$RUN/kube-proxy.yaml" <<EOF
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: $RUN/kube-proxy.kubeconfig}
clusterCIDR: 10.244.0.0/16
hostnameOverride: node
oomScoreAdj: 0
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
EOF
start kube-proxy "$BIN/kube-proxy" --config "$RUN/kube-proxy.yaml"

# The first process of a namespace inherits orphans and must reap them; bash does so while it waits.
while :; do
  sleep 3600 &
  wait $! || true
done
