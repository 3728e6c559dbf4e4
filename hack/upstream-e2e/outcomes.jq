# Turns the results of godog (format cucumber) into lines "OUTCOME|FEATURE|SCENARIO|STEP" with the failed step. Examples of an outline are numbered.
def outcome:
  [.steps[]?.result.status] as $steps
  | if any($steps[]; IN("failed", "undefined", "ambiguous", "pending")) then "fails"
    elif $steps == [] or any($steps[]; . == "skipped") then "not run"
    else "passed" end;
def example: (.id | capture(";;(?<row>[0-9]+)$") | " #\(.row | tonumber - 1)") // "";
.[]
| (.uri | split("/") | last | rtrimstr(".feature")) as $feature
| .elements[]?
| [outcome, $feature, .name + example, ([.steps[]? | select(.result.status == "failed").name] | first // "")]
| join("|")
