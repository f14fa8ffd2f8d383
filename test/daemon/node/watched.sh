#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A watched job (--monitor) at a daemon: its estimate is by what it may use beside a busy job, it
# is shown as what it is, and what went beyond is counted. So is what a policy that is not enforced
# lets through.
set -u
. test/lib/node.bash
need curl
METRICS_AT=127.0.0.1:0
policy 2k/s
start_node
cat >"$SCRATCH/work.py" <<'P2'
import os, sys
for _ in range(int(sys.argv[2])): os.stat(sys.argv[1])
if len(sys.argv) > 3: open(sys.argv[3]).read()
P2
work() { echo python3 "$SCRATCH/work.py" "$DATA" "$@"; }
of_job() { # JOB EXPR, of its first stream
  field "[(j, s) for j in d if j['job'] == '$1' for s in j['streams']][0]$2"
}

# Somebody uses all that there is.
$S run -q --job busy --class bronze -- $(work 100000000) &
busy=$!
is_busy() { [ "$(of_job busy '[1]["blocked"] > 0' 2>/dev/null)" = True ]; }
until_true is_busy || fail 'nobody is busy'

# Short, so the node has not even looked; gold has four fifths, 1600/s.
mkfifo "$SCRATCH/hold"
$S run -q --monitor --job short --class gold --report "$SCRATCH/report.json" -- $(work 6000) ||
  fail "run: $?"
python3 - "$SCRATCH/report.json" <<'P2' || fail 'not what the class would have waited'
import json, sys
report = json.load(open(sys.argv[1]))
channel = next(c for c in report["channels"] if c["would"]["delayed"])
longest = channel["calls"] / 1600
# What passed meanwhile, and what idle time had saved.
shortest = longest - report["elapsed_s"] - 0.5
told = channel["would"]["waited_ns"] / 1e9
assert channel["delayed"] == 0 and shortest <= told <= longest * 1.05, (told, longest, report)
P2
is_gone() { ! [ -e "$RUN/jobs/$1" ]; }
until_true is_gone short || fail 'it stays'

# One that stays: what it does is seen, nothing of it waits, and who is held gets his part.
$S run -q --monitor --job seen --class gold -- $(work 100000000) &
seen=$!
is_seen() { [ "$(of_job seen '[1]["would_delay"] > 2000' 2>/dev/null)" = True ]; }
until_true is_seen || fail "$(field 'd')"
[ "$(of_job seen '[0]["state"]')" = watched ] || fail "$(field 'd')"
[ "$(of_job seen '[1]["blocked"]')$(of_job seen '[1]["waiters"]')" = 0.00 ] || fail "$(field 'd')"
$S explain --job seen >"$SCRATCH/out" || fail "explain: $?"
grep -q 'were it held to that, .* would wait. No request waited' "$SCRATCH/out" ||
  fail "$(cat "$SCRATCH/out")"
$S jobs | grep -q '^seen .* watched ' || fail "$($S jobs)"
shows_beyond() { $S top --batch -n 1 >"$SCRATCH/out" && grep -q ' BEYOND' "$SCRATCH/out"; }
until_true shows_beyond || fail "top: $(cat "$SCRATCH/out")"
share_is_small() { [ "$(of_job busy '[1]["grant"] < 600' 2>/dev/null)" = True ]; }
until_true share_is_small || fail "who is held: $(field d)"

# All of it is counted, and stays so when the job is gone.
beyond() { metric 'unheld_operations_total{resource="metadata",target="scratch"}'; }
is_above() { awk -v of="$(beyond)" -v least="$1" 'BEGIN { exit !(of + 0 > least) }'; }
until_true is_above 5000 || fail "counted: $(beyond)"
kill "$seen"
wait "$seen" 2>/dev/null
until_true is_gone seen || fail 'it stays'
is_above 5000 || fail "forgotten: $(beyond)"
$S report --history --text >"$SCRATCH/out" || fail "report: $?"
tr '\n' ' ' <"$SCRATCH/out" | tr -s ' ' | grep -q 'went beyond what was granted' ||
  fail "$(cat "$SCRATCH/out")"

# The same for everybody while the policy is not enforced.
sed -i 's/"control": {/&"enforce": false, /' "$SCRATCH/policy.json"
$S policy apply "$SCRATCH/policy.json" || fail "apply: $?"
before=$(beyond)
is_beyond() { [ "$(of_job busy '[1]["would_delay"] > 2000' 2>/dev/null)" = True ]; }
until_true is_beyond || fail "$(field d)"
until_true is_above $((${before%%.*} + 5000)) || fail "from $before: $(beyond)"
kill "$busy"
wait "$busy" 2>/dev/null
exit 0
