# shellcheck shell=bash
# Functions of the scripts that test the product in a cluster: test.sh here, ../kind.sh and ../upstream-e2e.sh source this file in
# the root of the repository.
node=$PWD/hack/node/node.sh
mkdir -p "${CARGO_TARGET_DIR:-target}"
# The target directory of cargo, absolute; the scripts use it.
# shellcheck disable=SC2034
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
# Absolute, because programs enter the node from other folders.
NODE_DIR=$(realpath --canonicalize-missing "${NODE_DIR:-$target/node}")
export NODE_DIR

# require_node WHAT: ends the script and says that WHAT is skipped if no node can run on this machine.
require_node() {
  local why
  if ! why=$("$node" supported) || ! why=$(hack/node/packages.sh); then
    echo "SKIPPED: $1: $why" >&2
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
  fi
}

# Builds the static binaries, unless BIN_DIR has them, and the program that pushes images. With DEBUG_BINARIES=1, all programs
# are those in target/debug, and nothing is built: `cargo xtask test` has just built them.
build_product() {
  [ -z "${DEBUG_BINARIES:-}" ] || return 0
  BIN_DIR=${BIN_DIR:-$(hack/image.sh --build)}
  BIN_DIR=$(cd "$BIN_DIR" && pwd)
  export BIN_DIR
  cargo build --quiet --locked -p olm-harness --bin image
}

# Starts a new node, which ends with the script unless KEEP is set. Ends the script with exit code 3 if the node does not come up.
start_node() {
  "$node" down
  trap '[ -n "${KEEP:-}" ] || "$node" down' EXIT
  local started=$SECONDS
  "$node" up || exit 3
  echo "the node is up after $((SECONDS - started)) s"
}

# describe_cluster ENTER...: prints pods, events and logs of the product; ENTER is the command before kubectl.
describe_cluster() {
  "$@" kubectl get pods --all-namespaces --output wide || true
  # The list of pods shows an evicted pod as Completed or Error.
  "$@" kubectl get pods --all-namespaces --field-selector status.phase=Failed \
    --output custom-columns=FAILED:.metadata.name,REASON:.status.reason,MESSAGE:.status.message || true
  "$@" kubectl get events --all-namespaces --sort-by .lastTimestamp | tail -40 || true
  "$@" kubectl -n olmv1-system logs --selector app.kubernetes.io/part-of=olm --tail 40 --prefix || true
}
