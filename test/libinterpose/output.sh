#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Standard output and error of programs are byte for byte what they are without us.
. test/libinterpose/common.bash

script='cat f; x=$(cat f); printf %s "$x"; ls f none; echo "err" >&2; wc -c <f; cd none; exit 3'
cd "$DIR" || fail cd
head -c 3000 /dev/urandom | base64 >f
sh -c "$script" >"$SCRATCH/out1" 2>"$SCRATCH/err1"
[ $? = 3 ] || fail 'bare'
limited all=2000/s sh -c "$script" >"$SCRATCH/out2" 2>"$SCRATCH/err2"
[ $? = 3 ] || fail 'the exit status changed'
cmp "$SCRATCH/out1" "$SCRATCH/out2" || fail 'standard output changed'
cmp "$SCRATCH/err1" "$SCRATCH/err2" || fail 'standard error changed'
