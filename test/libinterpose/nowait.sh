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
