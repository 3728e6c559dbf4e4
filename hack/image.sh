#!/usr/bin/env bash
# Builds both controllers and the web pages statically, like the Dockerfile, and pushes them as images without a container engine:
#   hack/image.sh HOST[:PORT]/PREFIX TAG [--plain-http]
# pushes HOST/PREFIX/catalogd:TAG, HOST/PREFIX/operator-controller:TAG, HOST/PREFIX/kubectl-olm:TAG, which serves the web pages, and
# HOST/PREFIX/sample-operator:TAG, which is the operator of test/testdata/sample-operator, and prints their digests. Set REGISTRY_AUTH=USER:PASSWORD if the registry needs credentials.
# Set BIN_DIR=dir to use static binaries instead of building: hack/image.sh --build prints the folder of those it builds.
# Set DEBUG_BINARIES=1 for the programs in target/debug, with the libraries of this machine: images for tests on this machine alone.
# Needs: rustup target add x86_64-unknown-linux-musl, a musl C compiler (Debian: musl-tools), and Go.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --build ]; then
  prefix='' tag=${2:-dev}
elif [ $# -ge 2 ]; then
  prefix=$1 tag=$2
  shift 2
else
  sed -n '2,8p' "$0" | sed 's/^# \?//' >&2
  exit 2
fi
export OLM_VERSION=${OLM_VERSION:-$tag}
export OLM_COMMIT=${OLM_COMMIT:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
debug=${CARGO_TARGET_DIR:-target}/debug
libraries=()
if [ -n "${DEBUG_BINARIES:-}" ]; then
  BIN_DIR=$debug
  libraries=(--host-libraries)
elif [ -z "${BIN_DIR:-}" ]; then
  target=x86_64-unknown-linux-musl
  export OLM_TREE_STATE=${OLM_TREE_STATE:-$([ -z "$(git status --porcelain 2>/dev/null)" ] && echo clean || echo dirty)}
  export OLM_BUILD_DATE=${OLM_BUILD_DATE:-$(date -u +%FT%TZ)}
  cargo build --release --locked --target "$target" -p catalogd -p operator-controller -p kubectl-olm
  BIN_DIR=${CARGO_TARGET_DIR:-target}/$target/release
fi
if [ -z "$prefix" ]; then
  echo "$BIN_DIR"
  exit
fi
mkdir -p "${CARGO_TARGET_DIR:-target}/sample-operator"
sample=$(cd "${CARGO_TARGET_DIR:-target}/sample-operator" && pwd)/sample-operator
(cd hack/sample-operator && CGO_ENABLED=0 go build -buildvcs=false -ldflags '-s -w' -o "$sample" .)
[ -n "${DEBUG_BINARIES:-}" ] || cargo build --quiet --locked -p olm-harness --bin image
push() {
  "$debug/image" "$1" "$2" "$prefix/$1:$tag" --version "$OLM_VERSION" --commit "$OLM_COMMIT" "${@:3}"
}
for component in catalogd operator-controller kubectl-olm; do
  push "$component" "$BIN_DIR/$component" "${libraries[@]}" "$@"
done
push sample-operator "$sample" "$@"
