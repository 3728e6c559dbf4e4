#!/usr/bin/env bash
# Builds both controllers statically, like the Dockerfile, and pushes them as images without a container engine:
#   hack/image.sh HOST[:PORT]/PREFIX TAG [--plain-http]
# pushes HOST/PREFIX/catalogd:TAG and HOST/PREFIX/operator-controller:TAG and prints their digests. Set
# REGISTRY_AUTH=USER:PASSWORD if the registry needs credentials. Set BIN_DIR=dir to use static binaries instead of building.
# Needs: rustup target add x86_64-unknown-linux-musl, and a musl C compiler (Debian: musl-tools).
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '2,6p' "$0" | sed 's/^# \?//' >&2; exit 2; }
prefix=$1 tag=$2
shift 2
export OLM_VERSION=${OLM_VERSION:-$tag}
export OLM_COMMIT=${OLM_COMMIT:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
if [ -z "${BIN_DIR:-}" ]; then
  target=x86_64-unknown-linux-musl
  export OLM_TREE_STATE=${OLM_TREE_STATE:-$([ -z "$(git status --porcelain 2>/dev/null)" ] && echo clean || echo dirty)}
  export OLM_BUILD_DATE=${OLM_BUILD_DATE:-$(date -u +%FT%TZ)}
  cargo build --release --locked --target "$target" -p catalogd -p operator-controller
  BIN_DIR=${CARGO_TARGET_DIR:-target}/$target/release
fi
for component in catalogd operator-controller; do
  cargo run --quiet -p olm-harness --bin image -- "$component" "$BIN_DIR/$component" "$prefix/$component:$tag" \
    --version "$OLM_VERSION" --commit "$OLM_COMMIT" "$@"
done
