#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# aio, sendfile and copy_file_range are charged by bytes, the last two on both sides; anonymous
# memory is not touched.
. test/libinterpose/common.bash

limited none "$PROGRAMS/loop" aio 20 "$DIR" 1000 >"$SCRATCH/log" || fail "aio: $?"
counted 20000 20000 op read bytes
for call in sendfile copy_file_range; do
  limited read=1GB/s,write=1GB/s "$PROGRAMS/loop" $call 20 "$DIR" 1000 >"$SCRATCH/log" ||
    fail "$call: $?"
  counted 20000 20000 channel read amount
  counted 20000 20000 channel write amount
done
TIME=4 limited map=10/s "$PROGRAMS/loop" anonymous 500 "$DIR" >"$SCRATCH/log" || fail "mmap: $?"
counted 0 10 channel map calls
