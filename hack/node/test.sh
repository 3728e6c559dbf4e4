#!/usr/bin/env bash
# The tests on a real node: `make test-node`. Starts the node, pushes the images, runs test/node, and ends the node.
# Where no node can run they are skipped, and say so. Set KEEP=1 to keep the node for kubectl; hack/node/node.sh down ends it.
# Set BIN_DIR=dir to use existing static binaries, and ONLY=text for the folders of config/ whose path has this text, or for
# the commands of cmd/kubectl-olm, or docs/tutorial.md. DEBUG_BINARIES=1 uses the programs in target/debug.
set -euo pipefail
cd "$(dirname "$0")/../.."
. hack/node/lib.sh

require_node "the tests on a real node"
build_product
[ -n "${DEBUG_BINARIES:-}" ] || cargo build --quiet --locked -p olm-node -p kubectl-olm
start_node
images=$("$node" enter hack/image.sh 10.29.0.2:5000/olmv1 dev --plain-http)
# The images are one to a line.
# shellcheck disable=SC2086
RUN=$NODE_DIR/run PKI=$NODE_DIR/run/pki PATH=$target/debug:$PATH "$node" enter "$target/debug/olm-node" $images && status=0 || status=$?
[ "$status" = 0 ] || describe_cluster "$node" enter
exit "$status"
