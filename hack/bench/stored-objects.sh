#!/bin/sh
# Measures the memory of checking stored objects against a changed CRD, with a real API server.
#   hack/bench/stored-objects.sh [HOW_MANY]    default: 100000, which takes some minutes to create
# The measured program is static, for musl, like that of a release; OLM_BENCH_TARGET names another Rust target.
set -eu
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
triple=${OLM_BENCH_TARGET:-$(uname -m)-unknown-linux-musl}
cargo build --quiet --release --target "$triple" -p kubectl-olm
exec cargo run --quiet -p olm-harness --example stored_objects -- "$target/$triple/release/kubectl-olm" "${1:-100000}"
