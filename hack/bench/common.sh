# Builds the measured programs, $packages or catalogd, and the measuring one; sourced by the scripts in this directory.
# CARGO_PROFILE_RELEASE_LTO=off makes the build faster, and the programs a little slower and larger.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
profile=${PROFILE:-release}
# shellcheck disable=SC2086 # The names of packages are words.
cargo build --quiet --profile "$profile" --manifest-path "$root/Cargo.toml" -p olm-bench $(printf -- '-p %s ' ${packages:-catalogd})
bin=${CARGO_TARGET_DIR:-$root/target}/$profile
