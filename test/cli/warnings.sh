#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A limit that cannot do what was probably meant says so, and one that can says nothing.
set -u
. "$(dirname "$0")/../lib.sh"
run() { "$SLUICE" --run-dir "$SCRATCH/run" run --no-daemon "$@" -- true 2>"$SCRATCH/said"; }
warns() { # WORDS OPTION...: the warning has the words, and the program runs
  local words=$1
  shift
  run "$@" || fail "$*: the program did not run: $(cat "$SCRATCH/said")"
  grep -q "warning: .*$words" "$SCRATCH/said" || fail "$*: said: $(cat "$SCRATCH/said")"
}
silent() {
  run "$@" || fail "$*: $(cat "$SCRATCH/said")"
  [ ! -s "$SCRATCH/said" ] || fail "$*: said: $(cat "$SCRATCH/said")"
}
mkdir "$SCRATCH/t"
cat >"$SCRATCH/site.json" <<E
{"targets": {"t": {"path": "$SCRATCH/t", "capacity": {"metadata": "10k/s"}}},
 "classes": {"bronze": {"t": {"metadata": {"limit": "1k/s"}}}, "gold": {}}}
E
warns 'counts calls; bytes are written with a B' --limit data=10M/s
warns 'nothing in /proc is limited' --limit open=5/s@/proc
warns 'without --class nothing of it limits.*bronze, gold' --policy "$SCRATCH/site.json"
silent --limit data=10MB/s --limit read=1k/s --limit "open=5k/s@$SCRATCH/t"
silent --policy "$SCRATCH/site.json" --class bronze
