#!/bin/sh
# Measures operator-controller with many extensions against a real API server; the figures are in docs/benchmarks.md.
#   hack/bench/extensions.sh [HOW_MANY]        default: 200
# Resolving alone: `cargo bench -p olm-resolve`. Real operators: `cargo test -p olm-e2e --test real -- --nocapture` with OLM_VECTORS set
# and OLM_BIN_DIR at the release programs. A cache is never filled in advance.
set -eu
cd "$(dirname "$0")/../.."
# The measured programs are the build that the images hold; OLM_BENCH_TARGET names another Rust target.
target=${CARGO_TARGET_DIR:-target}
triple=${OLM_BENCH_TARGET:-$(uname -m)-unknown-linux-musl}
cargo build --quiet --release --target "$triple" -p operator-controller -p catalogd
OLM_BIN_DIR="$target/$triple/release" exec cargo run --quiet -p olm-harness --example extensions -- "${1:-200}"
