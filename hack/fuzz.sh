#!/usr/bin/env bash
# Runs each fuzz target for SECONDS: hack/fuzz.sh [SECONDS] [CRATE...]
# Needs cargo-fuzz and a nightly toolchain. Findings are in CRATE/fuzz/artifacts; add a test for each.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
crates=("$@")
[ ${#crates[@]} -gt 0 ] || crates=(pkg/version pkg/yaml pkg/fbc pkg/bundle pkg/image pkg/resolve pkg/catalogd pkg/cel)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/fuzz}
failed=()
for crate in "${crates[@]}"; do
  for target in "$crate"/fuzz/fuzz_targets/*.rs; do
    name=$(basename "$target" .rs)
    echo "== $crate $name, ${seconds}s"
    (cd "$crate" && cargo +nightly fuzz run "$name" -- \
      -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1) \
      || failed+=("$crate/$name")
  done
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
