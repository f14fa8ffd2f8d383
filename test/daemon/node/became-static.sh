#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A shell of a job becomes a static program, which keeps its number and its slot: it is told of as
# escaped, and `explain` says that it is not limited.
set -u
. test/lib/node.bash
. test/lib/static_reader.bash
static_reader "$SCRATCH/busy"
policy 5k/s
start_node
mkfifo "$SCRATCH/hold"
exec 9<>"$SCRATCH/hold"
$S run --job j --no-summary -- sh -c "stat $SCRATCH; exec $SCRATCH/busy" <"$SCRATCH/hold" \
  >/dev/null 2>"$SCRATCH/err" &
job=$!
over() {
  kill "$job" 2>/dev/null
  wait "$job" 2>/dev/null
  end_node
  rm -rf "$SCRATCH"
}
trap over EXIT
became() { [ "$(cat "/proc/$job/comm")" = busy ]; }
until_true became || fail "it is no static program: $(cat "/proc/$job/comm" "$SCRATCH/err")"
until_true 60 is "[('$job', 'static program')]" \
  "[(str(e['pid']), e['why']) for j in d for e in j['escaped']]" ||
  fail "not told of: $(cat "$SCRATCH/jobs.json")"
$S explain "$job" >"$SCRATCH/said" 2>&1 || fail "explain: $(cat "$SCRATCH/said")"
grep -q 'not limited: .*static' "$SCRATCH/said" || fail "explain says $(cat "$SCRATCH/said")"
