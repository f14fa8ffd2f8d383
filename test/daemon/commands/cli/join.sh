#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --job: a second run joins a living job and shares its bucket; other limits are refused.
set -u
. test/lib/lib.sh
S="$SLUICE --run-dir $SCRATCH/run"
$S run --job shared --limit open=500/s -- sleep 60 &
holder=$!
trap 'kill $holder 2>/dev/null; rm -rf "$SCRATCH"' EXIT
for _ in $(seq 100); do $S stat shared >/dev/null 2>&1 && break; sleep 0.05; done
$S run --job shared --report "$SCRATCH/r.json" -- cat /etc/passwd >/dev/null ||
  fail "joining without limits"
[ "$(json "$SCRATCH/r.json" 'd["job"] + " " + d["channels"][0]["name"]')" = "shared open" ] ||
  fail "channels"
$S run --job shared --limit open=500/s -- true || fail "joining with the same limits"
$S run --job shared --limit open=400/s -- true 2>"$SCRATCH/err"
[ $? = 2 ] || fail "other limits were accepted"
grep -q 'running with other limits' "$SCRATCH/err" || fail "message: $(cat "$SCRATCH/err")"
$S jobs | grep -q '^shared .*live' || fail "the job went away with the one who joined"
kill $holder
wait $holder 2>/dev/null
$S run --job shared --limit open=400/s -- true || fail "a dead job's name could not be taken"
