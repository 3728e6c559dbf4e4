# Builds what is measured and what measures; sourced by the scripts beside it.
# CARGO_PROFILE_RELEASE_LTO=off makes the build quicker and what it makes a little slower and larger.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cargo build --quiet --release --manifest-path "$root/Cargo.toml" -p catalogd -p olm-bench
bin=${CARGO_TARGET_DIR:-$root/target}/release
