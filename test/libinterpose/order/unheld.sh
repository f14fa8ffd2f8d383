#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Beside a file that the daemon holds a write to another one costs no call of the kernel more, and
# what its descriptor's number means later is not taken for what it meant.
. test/lib/order.bash

need strace
with_fake native
durable -- "$PROGRAMS/order_unheld" "$DATA" || fail "status $?"
strace -o "$SCRATCH/try" true 2>/dev/null || skip 'cannot trace here'
durable -- strace -f -o "$SCRATCH/calls" "$PROGRAMS/order_unheld" "$DATA" writes ||
  fail "writes: status $?"
asked=$(grep -cE '(statx|fstat|newfstatat|fcntl|lseek)\(' "$SCRATCH/calls")
[ "$(grep -c 'write(.*= 4$' "$SCRATCH/calls")" -ge 1000 ] || fail 'nothing was traced'
[ "$asked" -lt 200 ] || fail "$asked questions to the kernel for 1000 writes"
