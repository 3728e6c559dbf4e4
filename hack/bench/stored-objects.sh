#!/bin/sh
# Measures the memory of checking stored objects against a changed CRD, with a real API server.
#   hack/bench/stored-objects.sh [HOW_MANY]    default: 100000, which takes some minutes to create
set -eu
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release -p kubectl-olm
exec cargo run --quiet -p olm-harness --example stored_objects -- "$target/release/kubectl-olm" "${1:-100000}"
