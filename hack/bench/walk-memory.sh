#!/usr/bin/env bash
# Prints the peak memory (VmHWM) of reading catalogs: hack/bench/walk-memory.sh DIR...
# Each DIR is one catalog of all .json and .yaml files below it. Uses a release build.
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: $0 DIR..." >&2; exit 2; }
cd "$(dirname "$0")/../.." && root=$PWD && cd - >/dev/null
cargo build --quiet --release --manifest-path "$root/Cargo.toml" -p olm-fbc --example walk
walk=${CARGO_TARGET_DIR:-$root/target}/release/examples/walk
for dir in "$@"; do
  mapfile -t files < <(find "$dir" -type f \( -name '*.json' -o -name '*.yaml' \) | sort)
  [ ${#files[@]} -gt 0 ] || { echo "$dir: no catalog files" >&2; exit 1; }
  echo "== $dir, decode"
  "$walk" --decode "${files[@]}"
  echo "== $dir, decode and validate"
  "$walk" "${files[@]}"
done
