#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kernel is asked a few times in all whether names can be read, where names usually lie, and not
# at each of 5,000 calls.
. test/libinterpose/common.bash

need strace
strace -o "$SCRATCH/try" true 2>/dev/null || skip 'cannot trace here'

limited none strace -f -e trace=rt_sigprocmask -o "$SCRATCH/asked" "$PROGRAMS/name_places" "$DIR" ||
  fail "name_places: $?"
counted 5000 5200 op stat calls
asked=$(grep -c 'EINVAL' "$SCRATCH/asked")
echo "$asked questions"
[ "$asked" -ge 1 ] && [ "$asked" -le 20 ] || fail "$asked questions"
