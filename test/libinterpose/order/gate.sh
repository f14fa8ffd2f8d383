#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# Ordered targets, with a log daemon that does what the test wishes: after a barrier every change
# waits, and nothing else does; a file is not closed before the daemon has it; children, exec and
# exit wait; errors are told once; what is sent back is synced. The API of sluice_order.h also works
# in a durable target, and is an fsync without sluice.
. test/lib/order.bash

with_fake gate
ordered -- "$PROGRAMS/order_gate" "$DATA" || fail "changes: status $?"
for word in ordered durable; do
  mkdir -p "$SCRATCH/$word"
  DATA=$SCRATCH/$word
  ORDER=$word durable -- "$PROGRAMS/order_barrier" "$DATA" || fail "barriers: status $?"
done
"$PROGRAMS/order_barrier" "$DATA" || fail "bare: status $?"
with_fake sync
ordered -- "$PROGRAMS/order_noted" "$DATA" || fail "what is noted: status $?"
ordered -- "$PROGRAMS/raw_points" "$DATA" logged || fail "cancelled: status $?"
