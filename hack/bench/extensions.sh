#!/bin/sh
# Measures operator-controller with many extensions against a real API server: hack/bench/extensions.sh [HOW_MANY] [OPTION...]
# The default is 200; the options are those of hack/bench/report.
many=200
case ${1:-} in
  [0-9]*) many=$1; shift ;;
esac
exec "$(dirname "$0")/report" --only single --only tiny --only five --scale "$many" "$@"
