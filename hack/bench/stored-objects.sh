#!/bin/sh
# Measures the memory that holding stored objects against a changed CRD takes, with a real API server.
#   hack/bench/stored-objects.sh [HOW_MANY]    100000 when not said: making them takes some minutes
set -eu
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release -p kubectl-olm
exec cargo run --quiet -p olm-harness --example stored_objects -- "$target/release/kubectl-olm" "${1:-100000}"
