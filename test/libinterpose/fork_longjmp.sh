#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# siglongjmp out of the first call after fork, at any instruction: the child is metered afterwards.
. test/libinterpose/common.bash

[ "$(uname -m)" = x86_64 ] || skip 'single steps: x86-64 only'
limited read=100k/s "$PROGRAMS/fork_longjmp" "$DIR" >"$SCRATCH/log" || fail "status $?"
children=$(cat "$SCRATCH/log")
[ "$children" -gt 20 ] || fail "only $children children"
counted $((children * 20)) $((children * 20)) channel read calls
