#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --monitor says what a limit would have done: in the summary, the report and the page.
. test/lib/lib.sh

dir=$SCRATCH/tree report=$SCRATCH/report.json
mkdir "$dir"
cat >"$SCRATCH/work.py" <<'P'
import os, sys
for _ in range(600): os.stat(sys.argv[1])
P
monitored() {
  "$SLUICE" --run-dir "$SCRATCH/run" run --monitor --limit "$1@$dir" --summary \
    --report "$report" -- python3 "$SCRATCH/work.py" "$dir" 2>"$SCRATCH/summary" || fail "run: $?"
}

monitored stat=100/s
grep -q 'limits only counted' "$SCRATCH/summary" &&
  grep -q '^  limit .* would wait ' "$SCRATCH/summary" || fail "$(cat "$SCRATCH/summary")"
python3 - "$report" <<'P' || fail 'not what the limit would have done'
import json, sys
report = json.load(open(sys.argv[1]))
channel = report["channels"][0]
assert channel["delayed"] == 0 and channel["waited_ns"] == 0, channel
would, calls = channel["would"], channel["calls"]
# What 100/s takes for all calls, less the time that passed and at most a second of saved idleness.
longest = calls / 100
shortest = longest - report["elapsed_s"] - 1
assert shortest <= would["waited_ns"] / 1e9 <= longest, (would, report["elapsed_s"])
assert 0 < would["delayed"] < calls, would
assert would["wait_p50_ns"] <= would["wait_p99_ns"] <= would["wait_max_ns"] <= would["waited_ns"]
P
"$SLUICE" report --text "$report" >"$SCRATCH/text" || fail "report: $?"
tr '\n' ' ' <"$SCRATCH/text" | tr -s ' ' | grep -q 'it would have held back .* of 6[0-9]* calls' ||
  fail "$(cat "$SCRATCH/text")"
"$SLUICE" report "$report" -o "$SCRATCH/page.html" || fail "page: $?"
grep -q '<td>would be ' "$SCRATCH/page.html" || fail 'the page does not say it'

"$SLUICE" --run-dir "$SCRATCH/run" run --limit open=1k/s --summary -- cat "$SCRATCH/work.py" \
  >"$SCRATCH/out" 2>"$SCRATCH/summary" || fail "run: $?"
grep -q ' s, 1 process, exit 0' "$SCRATCH/summary" &&
  grep -q '^  limit .* waited ' "$SCRATCH/summary" ||
  fail "$(cat "$SCRATCH/summary")"

monitored stat=100k/s
"$SLUICE" report --text "$report" >"$SCRATCH/text" || fail "report: $?"
grep -q 'Nothing waited: limits were only counted' "$SCRATCH/text" || fail "$(cat "$SCRATCH/text")"

# Nothing holds back a close, so none would have waited.
"$SLUICE" --run-dir "$SCRATCH/run" run -q --monitor --limit close=1/s --report "$report" -- \
  python3 -c 'import os
for _ in range(50): os.close(os.open("/etc/passwd", os.O_RDONLY))' || fail "close: $?"
told=$(json "$report" '[c["calls"] >= 50 and c["would"]["delayed"] for c in d["channels"]]')
[ "$told" = '[0]' ] ||
  fail "closes would have waited: $(cat "$report")"
exit 0
