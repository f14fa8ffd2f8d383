#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A limit that cannot do what was probably meant is told of in one line, before the program runs;
# the program's output is its own, and --quiet is quiet. `policy check` tells the same of a policy.
set -u
. test/lib/lib.sh
S="$SLUICE --no-daemon --run-dir $SCRATCH/run"
says() { # TEXT OPTIONS...
  local text=$1
  shift
  $S run "$@" -- echo hello >"$SCRATCH/out" 2>"$SCRATCH/err" || fail "$*: $(cat "$SCRATCH/err")"
  [ "$(cat "$SCRATCH/out")" = hello ] || fail "$*: the program said $(cat "$SCRATCH/out")"
  if [ -z "$text" ]; then
    [ ! -s "$SCRATCH/err" ] || fail "$*: says $(cat "$SCRATCH/err")"
  else
    [ "$(cat "$SCRATCH/err")" = "sluice: warning: $text" ] ||
      fail "$*: says $(cat "$SCRATCH/err"), wanted $text"
    $S run -q "$@" -- true 2>"$SCRATCH/err" || fail "-q $*"
    [ ! -s "$SCRATCH/err" ] || fail "-q $*: says $(cat "$SCRATCH/err")"
  fi
}
says '--limit data=10M/s: 10M/s counts calls; for bytes write 10MB/s' --limit data=10M/s
says '--limit data=1000: 1k/s counts calls; for bytes write 1kB/s' --limit data=1000
says '' --limit open=500
says '' --limit data=10MB/s
says '' --limit data=1000/s
says '' --limit open=500/s
says '--limit close=5/s: close is counted and never held back' --limit close=5/s
says '' --limit metadata=500/s
says '--limit stat=5/s@/proc: /proc lives in the kernel alone and is never limited' \
  --limit stat=5/s@/proc
says '' --limit "stat=500/s@$SCRATCH"

cat >"$SCRATCH/site.json" <<P
{"targets": {"scratch": {"path": "$SCRATCH"}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 4}}},
             "bronze": {"scratch": {"metadata": {"limit": "5k/s"}}}}}
P
$S policy check "$SCRATCH/site.json" >"$SCRATCH/out" 2>"$SCRATCH/err" || fail 'policy check'
[ "$(cat "$SCRATCH/err")" = "sluice: $SCRATCH/site.json: warning: $SCRATCH/site.json:2:47: class \
gold, metadata on scratch: weight does nothing, as no capacity of it is given to share" ] ||
  fail "a weight of nothing: $(cat "$SCRATCH/err")"
P="--policy $SCRATCH/site.json"
says "$P without --class limits nothing (it has: gold, bronze)" $P
says "$P: class gold has no limit of its own: weights and reservations need a daemon" \
  $P --class gold
says '' $P --class bronze
says '' $P --limit metadata=100/s
sed '$s/}$/, "control": {"default_class": "bronze"}}/' "$SCRATCH/site.json" >"$SCRATCH/default.json"
says '' --policy "$SCRATCH/default.json"
$S --json explain --policy "$SCRATCH/default.json" stat "$SCRATCH" >"$SCRATCH/x.json" ||
  fail explain
[ "$(json "$SCRATCH/x.json" '[r["applies"] for r in d["rules"]]')" = '[True]' ] ||
  fail "the default class of a policy does not apply: $(cat "$SCRATCH/x.json")"

cat >"$SCRATCH/bad.json" <<P
{"targets": {"kernel": {"path": "/proc"}},
 "channels": [{"name": "r", "match": {"call": "read"}, "limit": "20M/s"},
              {"name": "o", "match": {"call": "open"}, "limit": "20/s"}]}
P
$S policy check "$SCRATCH/bad.json" >"$SCRATCH/out" 2>"$SCRATCH/err" || fail 'policy check'
for said in 'for bytes write 20MB/s' 'open does not cover opendir' 'is never limited'; do
  [ "$(grep -c "^sluice: .*warning: .*$said" "$SCRATCH/err")" = 1 ] ||
    fail "policy check, $said: $(cat "$SCRATCH/err")"
done
