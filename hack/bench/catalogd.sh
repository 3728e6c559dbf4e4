#!/usr/bin/env bash
# Measures the figures of catalogd in docs/benchmarks.md: hack/bench/catalogd.sh CATALOG [--seconds 5] [--polls]
# CATALOG is a folder with a real file-based catalog; it is measured once (x1) and repeated fifteen times (x15).
[ $# -gt 0 ] || { echo "usage: $0 CATALOG [--seconds N] [--polls]" >&2; exit 2; }
catalog=$1 && shift
exec "$(dirname "$0")/report" --only catalogd --catalog "$catalog" "$@"
