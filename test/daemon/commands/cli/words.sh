#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What people type by habit, and what they are told then.
set -u
. test/lib/lib.sh
says() { # WORDS COMMAND...
  local words=$1
  shift
  "$@" >"$SCRATCH/said" 2>&1
  grep -q -- "$words" "$SCRATCH/said" || fail "$*: said: $(cat "$SCRATCH/said")"
}
mkdir "$SCRATCH/t"
cat >"$SCRATCH/site.json" <<E
{"targets": {"t": {"path": "$SCRATCH/t", "capacity": {"metadata": "10k/s"}}},
 "classes": {"bronze": {"t": {"metadata": {"limit": "1k/s"}}}, "gold": {}},
 "control": {"nodes": ["n[1-2]", "login1"]}}
E
says 'n1, n2.*login1' "$SLUICE" policy check "$SCRATCH/site.json"
says 'it has: bronze, gold' "$SLUICE" run --policy "$SCRATCH/site.json" --class nope -- true
# What a program leaves running is not in its report, and the summary says so.
"$SLUICE" --run-dir "$SCRATCH/run" run --no-daemon --summary -- \
  sh -c "sleep 100 >/dev/null 2>&1 & echo \$! >'$SCRATCH/pid'
    until grep -q sleep /proc/\$!/comm; do :; done" 2>"$SCRATCH/summary" || fail "run"
kill "$(cat "$SCRATCH/pid")"
grep -q '1 still runs: what it does from here on' "$SCRATCH/summary" ||
  fail "the summary: $(cat "$SCRATCH/summary")"
