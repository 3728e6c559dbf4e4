# Builds the measured program and the measuring one; sourced by the scripts in this directory.
# The measured program is the build that the images hold: static, for musl. OLM_BENCH_TARGET names another Rust target, for example
# x86_64-unknown-linux-gnu.
# CARGO_PROFILE_RELEASE_LTO=off makes the build faster, and the programs a little slower and larger.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
target_dir=${CARGO_TARGET_DIR:-$root/target}
triple=${OLM_BENCH_TARGET:-$(uname -m)-unknown-linux-musl}
cargo build --quiet --release --manifest-path "$root/Cargo.toml" --target "$triple" -p catalogd
# The measuring program is always of this machine: a client should cost as little as it can.
cargo build --quiet --release --manifest-path "$root/Cargo.toml" -p olm-bench
bin=$target_dir/$triple/release
ln -sf "$(cd "$target_dir/release" && pwd)/olm-bench" "$bin/olm-bench"
