#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# waits
# A throttled target: 100 of 500 operations per second are let through. Operation k is meant for
# k / 500 and sent at k / 100, so after t seconds the lag is 0.8 t; nothing is left out, and what is
# not throttled is not late. Figures are bounded by arithmetic, with room for a stalled machine.
set -u
. test/daemon/commands/replay/replay.bash
trap 'rm -rf "$SCRATCH"' EXIT
mkdir "$SCRATCH/d"
trace "$SCRATCH/t.csv" 1 getattr,getxattr 500,50 500,50
"$SLUICE" --run-dir "$SCRATCH/run" run --no-summary --limit stat=100/s -- \
  "$SLUICE" replay "$SCRATCH/t.csv" --target "$SCRATCH/d" --files 20 --depth 1 --fanout 2 -q \
  -o "$SCRATCH/r.json" || fail "status $?"
[ "$(total "$SCRATCH/r.json" done getattr)" = 1000 ] || fail "not all stats were done"
python3 - "$SCRATCH/r.json" <<'E2' || fail "see above"
import json, sys
d = json.load(open(sys.argv[1]))
row = {(r["op"], r["what"]): r["values"] for r in d["timeline"]["rows"]}
sent, lag = row["getattr", "submitted"], row["getattr", "lag"]
wrong = []
if row["getattr", "offered"] != [500, 500]:
    wrong.append(f"offered {row['getattr', 'offered']}")
# From the numbers sent alone: the last operation of a second is late by its end less k / 500.
k = 0
for i, n in enumerate(sent):
    k += n
    if n == 0 or k >= 1000:
        continue
    exact = (i + 1) - k / 500
    if not exact - 0.06 <= lag[i] <= exact + 0.02:
        wrong.append(f"second {i}: lag {lag[i]}, by arithmetic {exact}")
last = [j["ended_s"] for j in d["jobs"]][0]
if not 9 <= last <= 30:
    wrong.append(f"1000 at 100/s ended after {last}")
late = next(t for t in d["totals"] if t["op"] == "getattr")["delayed"]
if late < 980:
    wrong.append(f"only {late} of 1000 count as delayed")
print("\n".join(wrong))
sys.exit(bool(wrong))
E2

# --drain bounds how long it goes on; what was not sent is not counted as sent.
"$SLUICE" --run-dir "$SCRATCH/run" run --no-summary --limit stat=100/s -- \
  "$SLUICE" replay "$SCRATCH/t.csv" --target "$SCRATCH/d" --files 20 --depth 1 --fanout 2 -q \
  --drain 1s -o "$SCRATCH/r.json" || fail "drain: status $?"
between 200 "$(total "$SCRATCH/r.json" done getattr)" 330 "drain: done"
[ "$(total "$SCRATCH/r.json" offered getattr)" = 1000 ] || fail "drain: offered"
[ "$(json "$SCRATCH/r.json" 'd["jobs"][0]["finished"]')" = False ] || fail "drain: finished"
is_empty "$SCRATCH/d" lag
