# Builds the measured programs, $packages or catalogd, and the measuring one; sourced by the scripts in this directory.
# The measured programs are the build that the images hold: static, for musl. OLM_BENCH_TARGET names another Rust target, for example
# x86_64-unknown-linux-gnu.
# CARGO_PROFILE_RELEASE_LTO=off makes the build faster, and the programs a little slower and larger.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
target_dir=${CARGO_TARGET_DIR:-$root/target}
profile=${PROFILE:-release}
triple=${OLM_BENCH_TARGET:-$(uname -m)-unknown-linux-musl}
# shellcheck disable=SC2086 # The names of packages are words.
cargo build --quiet --profile "$profile" --manifest-path "$root/Cargo.toml" --target "$triple" $(printf -- '-p %s ' ${packages:-catalogd})
# The measuring program is always of this machine: a client should cost as little as it can.
cargo build --quiet --profile "$profile" --manifest-path "$root/Cargo.toml" -p olm-bench
bin=$target_dir/$triple/$profile
ln -sf "$(cd "$target_dir/$profile" && pwd)/olm-bench" "$bin/olm-bench"
