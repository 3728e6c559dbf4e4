#!/usr/bin/env bash
# The tests on a real node: `make test-node`. Starts the node, pushes the images, runs test/node, and ends the node.
# Where no node can run they are skipped, and say so. Set KEEP=1 to keep the node for kubectl; hack/node/node.sh down ends it.
# Set BIN_DIR=dir to use existing static binaries, and ONLY=text for the folders of config/ whose path has this text.
set -euo pipefail
cd "$(dirname "$0")/../.."
node=hack/node/node.sh

if ! why=$($node supported); then
  echo "SKIPPED: the tests on a real node: $why" >&2
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
BIN_DIR=${BIN_DIR:-$(hack/image.sh --build)}
export BIN_DIR
cargo build --quiet --locked -p olm-harness --bin image
cargo build --quiet --locked -p olm-node

$node down
trap '[ -n "${KEEP:-}" ] || $node down' EXIT
started=$SECONDS
$node up
echo "the node is up after $((SECONDS - started)) s"
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
run=${NODE_DIR:-$target/node}/run
images=$($node enter hack/image.sh 10.29.0.2:5000/olmv1 dev --plain-http)
# The images are one to a line.
# shellcheck disable=SC2086
RUN=$run PKI=$run/pki $node enter "$target/debug/olm-node" $images && status=0 || status=$?
if [ "$status" != 0 ]; then
  $node enter kubectl get pods --all-namespaces --output wide || true
  $node enter kubectl get events --all-namespaces --sort-by .lastTimestamp | tail -40 || true
  $node enter kubectl -n olmv1-system logs --selector app.kubernetes.io/part-of=olm --tail 40 --prefix || true
fi
exit "$status"
