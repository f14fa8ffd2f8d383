#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that answers its system calls itself is asked for its own and for none of ours.
. test/libinterpose/common.bash

"$PROGRAMS/syscall_dispatch" "$DIR" >"$SCRATCH/bare"
case $? in 0) ;; 77) skip 'no such dispatch here' ;; *) fail bare ;; esac
limited "all=1M/s@$DIR" "$PROGRAMS/syscall_dispatch" "$DIR" >"$SCRATCH/ours" || fail "in a job: $?"
diff "$SCRATCH/bare" "$SCRATCH/ours" || fail 'it was asked for other calls'
counted 1 1000 passthrough sandboxed calls
