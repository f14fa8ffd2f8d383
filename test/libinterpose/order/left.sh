#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A log that a run left in a durable directory: until it is recovered no job begins there that would
# not bring it home itself. What another user puts there under its name keeps nobody from working.
. test/lib/order.bash
with_fake native
other=$SCRATCH/other
mkdir -p "$other"

: >"$other/.sluice-order.$(id -u).log"
durable --order "durable@$other" -- touch "$SCRATCH/began" 2>"$SCRATCH/err"
[ $? = 125 ] || fail "a log was left, and: $(cat "$SCRATCH/err")"
grep -q "$other/.sluice-order.$(id -u).log: a run that was cut off left" "$SCRATCH/err" ||
  fail "not told: $(cat "$SCRATCH/err")"
[ ! -e "$SCRATCH/began" ] || fail 'it ran all the same'
durable --order-journal "$SCRATCH/own" --order "durable@$other" -- true 2>"$SCRATCH/err" &&
  fail 'a log of its own hides the one that was left'
durable -- true || fail "another directory: $?"
mv "$other/.sluice-order.$(id -u).log" "$DATA/"
durable -- true || fail "its own log is its daemon's to recover: $?"
rm -f "$DATA/.sluice-order.$(id -u).log"

if [ "$(id -u)" = 0 ]; then
  strangers() { : >"$1" && chown 64001 "$1"; }
  strangers "$other/.sluice-order.0.log"
  durable --order "durable@$other" -- touch "$SCRATCH/began" || fail "a stranger's file: $?"
  [ -e "$SCRATCH/began" ] || fail "a stranger's file kept it from running"
  strangers "$DATA/.sluice-order.64001.log"
  durable -- true || fail "a stranger's journal beside its own: $?"
  strangers "$DATA/.sluice-order.0.log"
  durable -- true 2>"$SCRATCH/err"
  [ $? = 2 ] && grep -q "$DATA/.sluice-order.0.log: belongs to another user" "$SCRATCH/err" ||
    fail "a stranger's file by the name of its own: $(cat "$SCRATCH/err")"
fi

# Where others may remove it, that is told.
rm -f "$DATA"/.sluice-order.*.log
chmod 777 "$DATA"
durable -- true 2>"$SCRATCH/err" || fail "a directory of all: $?"
grep -q "$DATA: everybody may remove the journal there.*--order-journal" "$SCRATCH/err" ||
  fail "nobody is told: $(cat "$SCRATCH/err")"
chmod 1777 "$DATA"
durable -- true 2>"$SCRATCH/err"
grep -q 'may remove the journal' "$SCRATCH/err" && fail "nobody else may: $(cat "$SCRATCH/err")"
exit 0
