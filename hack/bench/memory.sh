#!/usr/bin/env bash
# Pulls, unpacks and serves a catalog of 500 MB of JSON with a catalogd that may use 96 MiB:
# hack/bench/memory.sh [--megabytes 500] [--object 20000 | --catalog DIR] [--cap 96]
source "$(dirname "$0")/common.sh"
exec "$bin/olm-bench" memory --catalogd "$bin/catalogd" "$@"
