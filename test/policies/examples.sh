#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The walk-through of policies/examples says what `sluice policy check` says; the sample
# configurations of the daemon are accepted.
set -u
. test/lib/site.bash
examples=$top/policies/examples
block() { # NAME: what stands between its marks
  sed -n "/^<!-- $1 -->\$/,/^<!-- end -->\$/p" "$examples/README.md" | sed '1d;$d;s/^    //'
}
cd "$SCRATCH" || fail "no scratch"

block check >wanted
[ -s wanted ] || fail "no block in the walk-through"
"$SLUICE" policy check "$examples/three-classes.json" 2>/dev/null |
  sed 's/ (not on this machine)$//' >found
diff wanted found || fail "the walk-through is stale"

sed 's#"metadata": {"reservation": "10k/s"#"metadata": {"reservation": "95k/s"#' \
  "$examples/three-classes.json" >three-classes.json
block refused >wanted
"$SLUICE" policy check three-classes.json 2>found
[ $? = 2 ] || fail "95k/s is accepted"
sed -i 's/^sluice: //' found
diff wanted found || fail "the refusal in the walk-through is stale"

block vops >wanted
"$SLUICE" policy check "$examples/virtual-iops.json" 2>/dev/null | head -n "$(wc -l <wanted)" |
  sed 's/ (not on this machine)$//' >found
diff wanted found || fail "what is said of virtual IOPs is stale"

block steered >wanted
[ -s wanted ] || fail "no block of a steered capacity"
"$SLUICE" policy check "$examples/steered.json" 2>/dev/null | head -n "$(wc -l <wanted)" |
  sed 's/ (not on this machine)$//' >found
diff wanted found || fail "what is said of a steered capacity is stale"

block requests >wanted
[ -s wanted ] || fail "no block of promised requests"
"$SLUICE" policy check "$examples/requests-rocksdb.json" 2>/dev/null | head -n "$(wc -l <wanted)" |
  sed 's/ (not on this machine)$//' >found
diff wanted found || fail "what is said of promised requests is stale"

block tail >wanted
[ -s wanted ] || fail "no block of background work"
"$SLUICE" policy check "$examples/tail-latency.json" 2>/dev/null | head -n "$(wc -l <wanted)" |
  sed 's/ (not on this machine)$//' >found
diff wanted found || fail "what is said of background work is stale"

"$SLUICE" policy check "$examples/tail-latency-postgresql.json" >found 2>/dev/null ||
  fail "tail-latency-postgresql.json is refused"
grep -q 'background-writer, vacuum, checkpointer have the rest' found ||
  fail "what PostgreSQL does in the background: $(cat found)"

# Every file is named in the table.
for file in "$examples"/*.json; do
  grep -q "^| \`${file##*/}\` |" "$examples/README.md" || fail "${file##*/} is not in the table"
done

for role in node relay cluster; do
  sed "s#/etc/sluice/policy.json#$examples/three-classes.json#
       s#/etc/sluice/keys[a-z-]*#$SCRATCH/k#" "$top/daemon/systemd/$role.json" >"$role.json"
  [ -d k ] || "$SLUICED" keys new --dir "$SCRATCH/k" me >/dev/null || fail "keys"
  cp k/public k/parent.pub
  "$SLUICED" --config "$role.json" --name me --check >out 2>&1 || fail "$role.json: $(cat out)"
done
