#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A handler spends from the lease that the interrupted call is just spending from: no token comes
# out of nothing.
. test/libinterpose/common.bash

[ "$(uname -m)" = x86_64 ] || skip 'single steps: x86-64 only'
limited read=20MB/s "$PROGRAMS/lease_signals" "$DIR" >"$SCRATCH/log" || fail "status $?"
between 1300 "$(cat "$SCRATCH/log")" 15000 'ms for 30 MB at 20 MB/s'
