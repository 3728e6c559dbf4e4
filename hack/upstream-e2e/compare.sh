#!/usr/bin/env bash
# Compares outcomes of upstream's scenarios with the list of expected ones:
#   compare.sh OUTCOMES EXPECTED [PARTIAL]
# OUTCOMES has lines "OUTCOME|FEATURE|SCENARIO|STEP" of outcomes.jq, EXPECTED lines "OUTCOME | FEATURE | SCENARIO | REASON"; OUTCOME is passed, fails
# or not run. Scenarios that are not in EXPECTED must pass. If PARTIAL is given and not 0, EXPECTED may name scenarios that OUTCOMES
# lacks. Prints one line for each scenario that did not pass, and the total.
set -euo pipefail
exec awk -F '[[:space:]]*[|][[:space:]]*' -v partial="${3:-0}" '
  function complain(text) { print "UNEXPECTED: " text; unexpected++ }
  NR == FNR {
    if ($0 ~ /^(#|$)/) next
    expected[$2 ": " $3] = $1
    reason[$2 ": " $3] = $4
    next
  }
  {
    scenario = $2 ": " $3
    seen[scenario] = 1
    count[$1]++
    if (!(scenario in expected)) {
      if ($1 != "passed") complain(scenario ": " $1 ($4 ? ", step: " $4 : ""))
    } else if ($1 == expected[scenario]) {
      print "expected: " scenario ": " $1 ": " reason[scenario]
    } else {
      complain(scenario ": " $1 ", and the list says: " expected[scenario])
    }
  }
  END {
    for (scenario in expected)
      if (!(scenario in seen) && !partial) complain(scenario ": listed, but the suite has no such scenario")
    if (!count["passed"]) complain("no scenario passed")
    printf "%d passed, %d failed, %d skipped\n", count["passed"], count["fails"], count["not run"]
    exit unexpected > 0
  }' "$2" "$1"
