#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A simulation that cannot be: what is wrong, where, what to do; status 2; no file half written.
set -u
. test/lib/lib.sh
[ -x "$(dirname "$SLUICE")/sluice-replay" ] || skip "needs sluice-replay"
cd "$SCRATCH" || exit 1
printf '# interval: 1s\ntime_s,open,job\n0,10,a\n0,20,b\n1,10,a\n1,20,b\n' >two.csv
cat >site.json <<END
{"targets": {"scratch": {"path": "/scratch", "capacity": {"metadata": "10/s"}},
             "home": {"path": "/home", "capacity": {"metadata": "5/s"}}},
 "classes": {"gold": {"scratch": {"metadata": {"weight": 4}}}}}
END
sed 's/"scratch": {"path"/"scartch": {"path"/' site.json >wrong.json

# refused PATTERN ARG...
refused() {
  local pattern=$1 status
  shift
  "$SLUICE" replay "$@" -o out.json >out.txt 2>&1
  status=$?
  [ "$status" = 2 ] || fail "'$*' ended with $status: $(cat out.txt)"
  grep -qE -- "$pattern" out.txt || fail "'$*' says: $(cat out.txt)"
  ls out.json* >/dev/null 2>&1 && fail "'$*' left a file"
  return 0
}

# Several targets have a capacity: the first one, and it is told.
"$SLUICE" replay two.csv --simulate --policy site.json >/dev/null 2>out.txt || fail "$(cat out.txt)"
grep -q 'put on target scratch, the first .*(scratch, home).*--target' out.txt ||
  fail "$(cat out.txt)"
refused 'no target .*has that name or path.*scratch, home' two.csv --simulate --policy site.json \
  --target /elsewhere
refused 'no class "silver".*gold' two.csv --simulate --policy site.json --target scratch \
  --class a=silver
"$SLUICE" replay two.csv --simulate --policy site.json --target scratch --class a=gold \
  --class b=gold --class gold >/dev/null 2>out.txt || fail "$(cat out.txt)"
grep -q -e '--class gold: no job has it' out.txt || fail "a class of nobody: $(cat out.txt)"
refused '"?c"?' two.csv --simulate --policy site.json --target scratch --class c=gold
refused 'wrong.json:[0-9]+' two.csv --simulate --policy wrong.json --target scratch
refused '--policy' two.csv --simulate
refused 'nothing.json' two.csv --simulate --policy nothing.json
printf '# interval: 1s\ntime_s,open,job\n0,-10,a\n' >bad.csv
refused 'bad.csv:3' bad.csv --simulate --policy site.json --target scratch
printf '# interval: 1s\ntime_s,open,job\n0,0,a\n' >none.csv
refused 'no operations|asks for nothing' none.csv --simulate --policy site.json --target scratch

# And what can be, by the name of the target and by a path in it.
for target in scratch /scratch /scratch/deep; do
  "$SLUICE" replay two.csv --simulate --policy site.json --target "$target" --class gold \
    -o out.json >out.txt || fail "--target $target ended with $?"
  [ "$(json out.json 'd["jobs"][0]["class"]')" = gold ] || fail "no class: $(cat out.txt)"
done
