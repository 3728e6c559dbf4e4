# Builds the measured programs, $packages or catalogd, and the measuring one; sourced by the scripts in this directory.
# The measured programs are the build that the images hold: static, for musl. OLM_BENCH_TARGET names another Rust target, for example
# x86_64-unknown-linux-gnu.
# CARGO_PROFILE_RELEASE_LTO=off makes the build faster, and the programs a little slower and larger.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Cargo runs in the checkout, so a relative folder of the caller would be another one there.
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
profile=${PROFILE:-release}
triple=${OLM_BENCH_TARGET:-$(uname -m)-unknown-linux-musl}
cc=CC_${triple//-/_}
need() {
  echo "the measured programs are built for $triple: $1, or set OLM_BENCH_TARGET=$(uname -m)-unknown-linux-gnu" >&2
  exit 1
}
# Runs cargo in the checkout, because it reads .cargo/config.toml, with the settings of the allocator, from the working directory.
build() (
  cd "$root"
  CARGO_TARGET_DIR=$target_dir cargo build --quiet --profile "$profile" "$@"
)
[ -d "$(cd "$root" && rustc --print target-libdir --target "$triple")" ] || need "run rustup target add $triple"
[[ $triple != *-musl ]] || [ -n "${!cc:-}" ] || command -v musl-gcc >/dev/null || need "install musl-gcc (Debian: musl-tools)"
# shellcheck disable=SC2086 # The names of packages are words.
build --target "$triple" $(printf -- '-p %s ' ${packages:-catalogd})
# The measuring program is always of this machine: a client should cost as little as it can.
build -p olm-bench
bin=$target_dir/$triple/$profile
ln -sf "$target_dir/$profile/olm-bench" "$bin/olm-bench"
