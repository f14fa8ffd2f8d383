#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whatever way a program writes, the pages are noted, or fsync is native. Files elsewhere and
# programs without a durable target are left alone. Who takes a file away from the log waits until
# the log has nothing of it, also when another is at it already.
. test/lib/order.bash

for how in native sync; do
  with_fake $how
  rm -rf "$DATA"/*
  durable -- "$PROGRAMS/order_noted" "$DATA" || fail "$how: status $?"
done
with_fake native
durable -- "$PROGRAMS/order_given_up" "$DATA" || fail "names: status $?"
durable -- "$PROGRAMS/order_unwatched" "$DATA" || fail "unwatched: status $?"
durable -- "$PROGRAMS/order_given_away" "$DATA" || fail "given away: status $?"
durable -- "$PROGRAMS/order_unseen" "$DATA" || fail "unseen: status $?"
durable -- "$PROGRAMS/order_refused" "$DATA" || fail "refused: status $?"
durable -- "$PROGRAMS/raw_points" "$DATA" logged || fail "cancelled: status $?"
with_fake hold
durable -- "$PROGRAMS/order_apart" "$DATA" || fail "apart: status $?"
[ ! -e "$DATA/.sluice-order.$(id -u).log" ] || fail 'the log is still there'
