#!/usr/bin/env bash
# The tests of `make test-node` on kind (https://kind.sigs.k8s.io): `make test-kind`. Creates a cluster and registries, pushes the
# images, runs test/node inside the node's container, and deletes both. After a failure, logs and a support bundle are in
# target/kind. Needs Linux on x86_64, kind 0.27 or newer, docker (or podman as CONTAINER_ENGINE), kubectl, and what hack/image.sh
# needs. Set KEEP=1 to keep the cluster, BIN_DIR=dir to use existing static binaries, ONLY=text for the folders of config/ whose path
# has this text, and NODE_IMAGE for another node than kind's default.
#
# The project's own machines have no container engine: there this script is only checked by shellcheck, and it has never been run.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/node/lib.sh
. hack/node/certificate.sh
engine=${CONTAINER_ENGINE:-docker}
cluster=olm-tests
container=$cluster-control-plane
registry=$cluster-registry
# Folder of the tests in the node's container.
run=/var/lib/olm-tests
artifacts=$target/kind

for program in kind "$engine" kubectl; do
  command -v "$program" >/dev/null || { echo "test-kind needs $program on the PATH; see docs/CONTRIBUTING.md" >&2; exit 1; }
done
if [ "$engine" != docker ]; then export KIND_EXPERIMENTAL_PROVIDER=$engine; fi

build_product
# Static, because the node's container has its own libraries.
musl=x86_64-unknown-linux-musl
cargo build --quiet --locked --target $musl -p olm-node -p kubectl-olm
programs=$target/$musl/debug

remove() {
  kind delete cluster --name "$cluster" || true
  "$engine" rm --force --volumes "$registry-private" "$registry-https" "$registry" >/dev/null 2>&1 || true
}
remove
trap '[ -n "${KEEP:-}" ] || remove' EXIT
rm -rf "$artifacts"
mkdir -p "$artifacts"
export KUBECONFIG=$artifacts/kubeconfig

# The tests read the audit log, and the manifests of the repository.
cat > "$artifacts/cluster.yaml" <<EOF
apiVersion: kind.x-k8s.io/v1alpha4
kind: Cluster
nodes:
- role: control-plane
  extraMounts:
  - {hostPath: "$PWD", containerPath: "$PWD", readOnly: true}
  - {hostPath: "$PWD/hack/node/audit.yaml", containerPath: /etc/kubernetes/audit.yaml, readOnly: true}
  kubeadmConfigPatches:
  - |
    kind: ClusterConfiguration
    apiServer:
      extraArgs:
        audit-policy-file: /etc/kubernetes/audit.yaml
        audit-log-path: $run/logs/audit.log
      extraVolumes:
      - {name: audit-policy, hostPath: /etc/kubernetes/audit.yaml, mountPath: /etc/kubernetes/audit.yaml, readOnly: true, pathType: File}
      - {name: audit-log, hostPath: $run/logs, mountPath: $run/logs, pathType: DirectoryOrCreate}
EOF
started=$SECONDS
kind create cluster --name "$cluster" --config "$artifacts/cluster.yaml" --wait 180s ${NODE_IMAGE:+--image "$NODE_IMAGE"}
echo "the cluster is up after $((SECONDS - started)) s"

# The registries are containers beside the node: without TLS, with HTTPS, and with HTTPS and the password of hack/node/htpasswd.
# They share a network address and their content. Containers and pods know them by the name of a Service.
serve() {
  local name=$1
  shift
  "$engine" run --detach --name "$name" "$@" docker.io/library/registry:3 >/dev/null
}
serve "$registry" --network kind --publish 127.0.0.1::5000 --env REGISTRY_STORAGE_DELETE_ENABLED=true
address=$("$engine" inspect --format '{{.NetworkSettings.Networks.kind.IPAddress}}' "$registry")
export PKI=$artifacts/pki
mkdir -p "$PKI"
for file in ca.crt ca.key; do "$engine" cp "$container:/etc/kubernetes/pki/$file" "$PKI/$file"; done
certificate registry /CN=registry "subjectAltName=DNS:registry.registry.svc,IP:$address"
cp hack/node/htpasswd "$PKI/htpasswd"
secure=(--network "container:$registry" --volumes-from "$registry" --volume "$PKI:/pki:ro"
  --env REGISTRY_HTTP_TLS_CERTIFICATE=/pki/registry.crt --env REGISTRY_HTTP_TLS_KEY=/pki/registry.key)
# Each registry has a port of its own for its metrics as well.
serve "$registry-https" "${secure[@]}" --env REGISTRY_HTTP_ADDR=:5443 --env REGISTRY_HTTP_DEBUG_ADDR=:5002
serve "$registry-private" "${secure[@]}" --env REGISTRY_HTTP_ADDR=:5444 --env REGISTRY_HTTP_DEBUG_ADDR=:5003 \
  --env REGISTRY_AUTH=htpasswd --env REGISTRY_AUTH_HTPASSWD_REALM=private --env REGISTRY_AUTH_HTPASSWD_PATH=/pki/htpasswd
published=$("$engine" port "$registry" 5000/tcp | head -1)
sed "s/REGISTRY_IP/$address/" hack/node/registry.yaml | kubectl apply --server-side -f -
"$engine" exec --interactive "$container" sh -c '
  mkdir -p /etc/containerd/certs.d/registry.registry.svc:5000
  cat > /etc/containerd/certs.d/registry.registry.svc:5000/hosts.toml' <<< "server = \"http://$address:5000\""
"$engine" exec --interactive "$container" sh -c '
  mkdir -p /etc/containerd/certs.d/registry.registry.svc:5443
  cat > /etc/containerd/certs.d/registry.registry.svc:5443/hosts.toml' <<EOF
server = "https://$address:5443"
ca = "/etc/kubernetes/pki/ca.crt"
EOF
images=$(hack/image.sh "127.0.0.1:${published##*:}/olmv1" dev --plain-http)

# enter CMD: runs CMD in the node's container, with the cluster's DNS in a mount namespace of its own.
dns=$(kubectl -n kube-system get service kube-dns -o jsonpath='{.spec.clusterIP}')
"$engine" exec "$container" mkdir -p "$run"
"$engine" exec --interactive "$container" sh -c "cat > $run/resolv.conf" <<EOF
search svc.cluster.local cluster.local
nameserver $dns
options ndots:5
EOF
for program in olm-node kubectl-olm; do "$engine" cp "$programs/$program" "$container:$run/$program"; done
enter() {
  # The inner shell expands its own arguments.
  # shellcheck disable=SC2016
  "$engine" exec --env KUBECONFIG=/etc/kubernetes/admin.conf --env "RUN=$run" --env PKI=/etc/kubernetes/pki --env "ONLY=${ONLY:-}" \
    --env "PATH=$run:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    "$container" unshare --mount sh -c 'mount --bind "$RUN/resolv.conf" /etc/resolv.conf && exec "$@"' sh "$@"
}

# The images are one to a line.
# shellcheck disable=SC2086
enter "$run/olm-node" $images && status=0 || status=$?
if [ "$status" != 0 ]; then
  describe_cluster enter
  if enter "$run/kubectl-olm" support-bundle -f "$run/support-bundle.tar.gz"; then
    "$engine" cp "$container:$run/support-bundle.tar.gz" "$artifacts/" || true
  fi
  kind export logs --name "$cluster" "$artifacts/logs" || true
  echo "logs and support bundle: $artifacts" >&2
fi
exit "$status"
