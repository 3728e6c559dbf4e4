# Builds the measured programs and the measuring ones; sourced by the scripts in this directory.
# CARGO_PROFILE_RELEASE_LTO=off makes the build faster, and the programs a little slower and larger.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cargo build --quiet --release --manifest-path "$root/Cargo.toml" -p catalogd -p olm-bench
bin=${CARGO_TARGET_DIR:-$root/target}/release
