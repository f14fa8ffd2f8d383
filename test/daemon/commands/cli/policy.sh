#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# policy check, show and explain: every example is valid, and a call meets the limits it should.
set -u
. test/lib/lib.sh
for file in "$top"/policies/examples/*.json; do
  [[ $file == *.cost.json ]] && continue
  "$SLUICE" policy check "$file" >"$SCRATCH/out" 2>&1 || fail "$file: $(cat "$SCRATCH/out")"
  "$SLUICE" policy show "$file" >"$SCRATCH/show.json" || fail "show $file"
  [ "$(json "$SCRATCH/show.json" '"algorithm" in d')" = True ] || fail "show $file"
done
sed "s#/scratch#$SCRATCH#; s#/home#/usr#" "$top/policies/examples/site.json" >"$SCRATCH/site.json"
applies() { # CALL PATH: names of the limits met
  "$SLUICE" --json explain --policy "$SCRATCH/site.json" --class bronze "$1" "$2" \
    >"$SCRATCH/x.json" || fail "explain $*"
  json "$SCRATCH/x.json" '" ".join(r["name"] for r in d["rules"] if r["applies"])'
}
[ "$(applies openat "$SCRATCH/f")" = metadata@scratch ] || fail "open in scratch"
[ "$(applies pwrite "$SCRATCH/f")" = data@scratch ] || fail "write in scratch"
[ "$(applies stat /usr/bin)" = metadata@home ] || fail "stat in home"
[ "$(applies stat /etc)" = '' ] || fail "stat elsewhere"
[ "$(applies stat /proc/self)" = '' ] || fail "stat in /proc"
cd "$SCRATCH" && [ "$(applies open ../"$(basename "$SCRATCH")"/new)" = metadata@scratch ] ||
  fail "a relative path"
cd "$top" || fail "cd"

# A tree that is not here stops only those whose limits name it.
sed "s#/scratch#$SCRATCH/none#; s#/home#/usr#" "$top/policies/examples/site.json" \
  >"$SCRATCH/elsewhere.json"
run() { "$SLUICE" --run-dir "$SCRATCH/run" run --policy "$SCRATCH/elsewhere.json" "$@" -- true; }
run 2>"$SCRATCH/err" || fail "without a class: $(cat "$SCRATCH/err")"
run --class urgent 2>"$SCRATCH/err" || fail "a class without limits: $(cat "$SCRATCH/err")"
run --class bronze 2>"$SCRATCH/err"
[ $? = 2 ] || fail "a missing tree is not a usage error"
grep -q "elsewhere.json:3:5: target $SCRATCH/none: No such file" "$SCRATCH/err" ||
  fail "a missing tree: $(cat "$SCRATCH/err")"

# What of a target is durable, in whose order, and what comes after what.
cat >"$SCRATCH/order.json" <<P
{"targets": {"scratch": {"path": "$SCRATCH", "order": "ordered", "stream": "job",
   "after": {"write": "MANIFEST-*", "durable": "*.dat"}}}}
P
"$SLUICE" policy check "$SCRATCH/order.json" >"$SCRATCH/out" || fail "check of an order"
grep -q 'a barrier, in streams by job' "$SCRATCH/out" || fail "order: $(cat "$SCRATCH/out")"
grep -q 'files like MANIFEST-\*' "$SCRATCH/out" || fail "after: $(cat "$SCRATCH/out")"
"$SLUICE" policy show "$SCRATCH/order.json" >"$SCRATCH/out"
for said in '"order": "ordered"' '"stream": "job"' '"patience_s": 60.0'; do
  grep -q "$said" "$SCRATCH/out" || fail "show, $said: $(cat "$SCRATCH/out")"
done
sed 's/"job"/"jobs"/' "$SCRATCH/order.json" >"$SCRATCH/bad.json"
"$SLUICE" policy check "$SCRATCH/bad.json" 2>"$SCRATCH/err"
[ $? = 2 ] && grep -q 'did you mean "job"' "$SCRATCH/err" || fail "stream: $(cat "$SCRATCH/err")"

# A directory that gathers small writes has no order, nor what lies in it: `run` refuses both.
for word in strict close-to-open; do
  cat >"$SCRATCH/both.json" <<P
{"targets": {"scratch": {"path": "$SCRATCH", "small": "$word"},
             "deep": {"path": "$SCRATCH/new/deep", "order": "durable"}}}
P
  mkdir -p "$SCRATCH/new/deep"
  "$SLUICE" --run-dir "$SCRATCH/run" run --policy "$SCRATCH/both.json" -- true 2>"$SCRATCH/run.err"
  [ $? = 2 ] || fail "run with both: $(cat "$SCRATCH/run.err")"
  for there in yes no; do
    "$SLUICE" policy check "$SCRATCH/both.json" >"$SCRATCH/out" 2>"$SCRATCH/err"
    [ $? = 2 ] || fail "check of $word with an order: $(cat "$SCRATCH/out")"
    cmp "$SCRATCH/run.err" "$SCRATCH/err" || fail "$word, there: $there: $(cat "$SCRATCH/err")"
    rm -rf "$SCRATCH/new"
  done
done

# What is refused of one class alone names the class.
for most in 7 8; do
  python3 -c '
import json, sys
opens = {"match": {"call": "open"}, "limit": "9/s"}
channels = [{"name": f"c{i}"} | opens for i in range(int(sys.argv[1]))]
print(json.dumps({"targets": {"scratch": {"path": sys.argv[2]}}, "channels": channels,
  "classes": {"high": {}, "low": {"scratch": {"metadata": {"limit": "9/s"}}}}}))' \
    $most "$SCRATCH" >"$SCRATCH/many$most.json"
done
"$SLUICE" policy check "$SCRATCH/many7.json" >/dev/null || fail "check of seven limits"
"$SLUICE" policy check "$SCRATCH/many8.json" >/dev/null 2>"$SCRATCH/err"
[ $? = 2 ] && grep -q "many8.json: class low: more than 8 limits apply" "$SCRATCH/err" ||
  fail "a class with too many limits: $(cat "$SCRATCH/err")"

# What README.md says of a class, of its name for a channel, and of `sluice set`.
"$SLUICE" --run-dir "$SCRATCH/run" run --policy "$SCRATCH/site.json" --class bronze --job hydro \
  -- sleep 60 &
trap 'kill $!; rm -rf "$SCRATCH"' EXIT
for _ in $(seq 100); do
  "$SLUICE" --run-dir "$SCRATCH/run" stat hydro >/dev/null 2>&1 && break
  sleep 0.05
done
set_class() { "$SLUICE" --run-dir "$SCRATCH/run" set "$1" class=silver 2>&1; }
set_class hydro | grep -q 'not kept: set its limits (it has: .*metadata@scratch' ||
  fail "set class: $(set_class hydro)"
[ "$(set_class nobody)" = "sluice: no job nobody in $SCRATCH/run" ] ||
  fail "set class of no job: $(set_class nobody)"
for order in jobs 'stat hydro' 'set hydro data@scratch=50MiB/s' 'pause hydro' 'resume hydro'; do
  "$SLUICE" --run-dir "$SCRATCH/run" $order >"$SCRATCH/out" 2>&1 ||
    fail "$order: $(cat "$SCRATCH/out")"
done
