#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# RWF_NOWAIT: EAGAIN at once when tokens are short, never a wait.
. test/libinterpose/common.bash

"$PROGRAMS/nowait" "$DIR"
[ $? != 77 ] || skip 'needs a file system with RWF_NOWAIT'
limited read=20/s "$PROGRAMS/nowait" "$DIR" short || fail "status $?"
passed=$(count op read calls)
[ "$passed" -lt 290 ] || fail "only $((301 - passed)) calls were refused"
counted "$passed" "$passed" channel read calls  # what was refused was not taken

# What it is refused gives nobody else more: 3 MiB at 1 MiB/s, less what idling was worth.
began=$(date +%s%N)
limited data=1MiB/s "$PROGRAMS/nowait" "$DIR" beside || fail "beside a writer: status $?"
ms=$((($(date +%s%N) - began) / 1000000))
[ "$ms" -ge 2500 ] || fail "3 MiB at 1 MiB/s took $ms ms"
