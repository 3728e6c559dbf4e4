#!/usr/bin/env bash
# Upstream's end-to-end suite against this product, on the node of hack/node:
#   hack/upstream-e2e.sh DIR [FEATURE...]
# DIR is a checkout of operator-framework/operator-controller, with the compiled program of its package test/e2e in
# DIR/test/e2e/e2e.test; set SUITE=program for another place. FEATUREs are files such as features/install.feature: only these run.
#
# The script writes no file into DIR. The node is isolated, so it has stand-ins for images of the suite: Debian's busybox, and
# hack/upstream-e2e/webhook-operator. hack/upstream-e2e/expected lists each scenario that fails or does not run, with the reason.
# The script fails if another scenario fails or is left out, or if a listed one passes.
# Set CONCURRENCY for the number of scenarios at a time, and E2E_STEP_TIMEOUT for the time limit of a step. BIN_DIR and KEEP are as
# for hack/node/test.sh. Results are in NODE_DIR/upstream-e2e.
set -euo pipefail
if [ $# -eq 0 ] || [ ! -d "$1/test/e2e/features" ]; then
  sed -n '2,11p' "$0" | sed 's/^# \?//' >&2
  exit 2
fi
checkout=$(cd "$1" && pwd)
shift
suite=$(realpath "${SUITE:-$checkout/test/e2e/e2e.test}")
[ -x "$suite" ] || { echo "$suite is no program: compile the package test/e2e of the checkout, or set SUITE" >&2; exit 2; }
cd "$(dirname "$0")/.."
. hack/node/lib.sh
registry=10.29.0.2:5000
results=$NODE_DIR/upstream-e2e
mkdir -p "$results"

require_node "upstream's suite"
command -v jq >/dev/null || { echo "no jq on the PATH, which reads the suite's results" >&2; exit 1; }
hack/node/packages.sh busybox=busybox-static >&2
build_product
webhooks=$target/webhook-operator
(cd hack/upstream-e2e/webhook-operator && CGO_ENABLED=0 go build -buildvcs=false -o "$webhooks" .)
start_node
enter() { "$node" enter "$@"; }

# Images of the suite's pods, under the names of public registries.
push() { enter "$target/debug/image" "$@" --plain-http; }
applets=()
for applet in sh mkdir httpd rm touch sleep true; do applets+=(--path "bin/$applet"); done
push busybox "$(command -v busybox)" "$registry/library/busybox:1.36" "${applets[@]}"
push manager "$webhooks" "$registry/olmtest/webhook-operator:0.0.4"
for host in docker.io quay.io; do
  enter mkdir -p "/etc/containerd/certs.d/$host"
  enter sh -c "echo 'server = \"http://$registry\"' > /etc/containerd/certs.d/$host/hosts.toml"
done

# The product, and the registry for the catalogs that the suite builds.
images=$(enter hack/image.sh "$registry/olmv1" dev --plain-http)
manifests=$(kubectl kustomize hack/upstream-e2e)
for name in catalogd operator-controller; do
  digest=$(sed -n "s|.*/olmv1/$name@||p" <<< "$images")
  manifests=${manifests//"olmv1/$name:dev"/"registry.registry.svc:5000/olmv1/$name@$digest"}
done
enter kubectl apply --server-side -f - <<< "$manifests" > "$results/install.log"
enter kubectl apply --server-side -f hack/upstream-e2e/registry.yaml >> "$results/install.log"
for deployment in operator-controller-e2e/docker-registry olmv1-system/catalogd-controller-manager \
  olmv1-system/operator-controller-controller-manager; do
  enter kubectl -n "${deployment%/*}" rollout status "deployment/${deployment#*/}" --timeout=120s
done

# The suite asks the container engine of kind for the address at which pods reach the suite.
printf '#!/bin/sh\necho %s\n' "${registry%:*}" > "$results/engine"
chmod +x "$results/engine"

# run NAME CONCURRENCY TAGS [FEATURE...]: writes the results of the scenarios with these tags to NAME.json.
run() {
  local name=$1 concurrency=$2 tags=$3 status=0
  shift 3
  echo "running the scenarios $tags, $concurrency at a time; log: $results/$name.log"
  (cd "$checkout/test/e2e" && CONTAINER_RUNTIME=$results/engine E2E_STEP_TIMEOUT=${E2E_STEP_TIMEOUT:-3m} "$node" enter "$suite" \
    "--godog.tags=$tags" "--godog.concurrency=$concurrency" "--godog.format=pretty,cucumber:$results/$name.json" "$@") \
    > "$results/$name.log" 2>&1 || status=$?
  [ -s "$results/$name.json" ] || { tail -20 "$results/$name.log" >&2; echo "the suite ended with $status" >&2; return 1; }
}
rm -f "$results"/*.json
run parallel "${CONCURRENCY:-6}" '~@Serial' "$@"
run serial 1 @Serial "$@"

jq --raw-output --from-file hack/upstream-e2e/outcomes.jq "$results"/*.json | sort > "$results/outcomes"
hack/upstream-e2e/compare.sh "$results/outcomes" hack/upstream-e2e/expected "$#" && status=0 || status=$?
[ "$status" = 0 ] || describe_cluster enter > "$results/cluster.log" 2>&1
exit "$status"
