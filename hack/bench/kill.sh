#!/usr/bin/env bash
# Kills catalogd two hundred times while it unpacks: hack/bench/kill.sh [--times 200] [--megabytes 20]
source "$(dirname "$0")/common.sh"
exec "$bin/olm-bench" kill --catalogd "$bin/catalogd" "$@"
