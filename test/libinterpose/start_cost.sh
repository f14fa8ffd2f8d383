#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What starting a program costs, in system calls, which do not scatter as times do: natively, with
# the library alone, and in a job. A build runs thousands of programs that live a millisecond.
. test/libinterpose/common.bash

need strace
most_alone=9 most_joined=21
strace -o "$SCRATCH/try" true 2>/dev/null || skip 'cannot trace here'

calls() { strace -f -o "$SCRATCH/$1" "${@:2}" || fail "$1: status $?"; grep -c '(' "$SCRATCH/$1"; }
native=$(calls native /bin/true) || exit 1
alone=$(calls alone -E LD_PRELOAD="$SLUICE_LIB" /bin/true) || exit 1
limited none bash -c 'echo "$LD_PRELOAD" >"$1"
  strace -o "$2/joined" -E LD_PRELOAD="$LD_PRELOAD" /bin/true' bash "$SCRATCH/name" "$SCRATCH" ||
  fail "in a job: $?"
joined=$(grep -c '(' "$SCRATCH/joined")
echo "system calls of /bin/true: $native natively, $alone with the library, $joined in a job"
[ $((alone - native)) -le $most_alone ] || fail "$((alone - native)) more with the library"
[ $((joined - native)) -le $most_joined ] || fail "$((joined - native)) more in a job"

# None of them makes files of /proc: that costs more than all else.
grep -q '"/proc/self/' "$SCRATCH/joined" && fail "$(grep '"/proc/self/' "$SCRATCH/joined")"
exit 0
