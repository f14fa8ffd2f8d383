#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gcc, its compiler proper, assembler and linker build a program that runs, with the same bytes.
. test/guests/common
need gcc cmp
cd "$SCRATCH" || exit 1
printf '#include <stdio.h>\nint main(void) { return printf("%%d\\n", 6 * 7) < 0; }\n' >a.c
gcc -O2 -c -o bare.o a.c || skip 'gcc does not work here'
limited --limit metadata=500/s --limit read=5MiB/s -- gcc -O2 -c -o gated.o a.c ||
  fail "gcc -c with limits: $?"
delayed
cmp bare.o gated.o || fail 'the objects differ'
limited --limit metadata=500/s -- gcc -O2 -pipe -o program a.c || fail "gcc with limits: $?"
[ "$(limited --limit all=100/s -- ./program)" = 42 ] || fail 'the program does not work'
