#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# policy check, show and explain: every example is valid, and a call meets the limits it should.
set -u
. "$(dirname "$0")/../lib.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
for file in "$top"/policies/examples/*.json; do
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
