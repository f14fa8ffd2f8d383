#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stdio is charged by the bytes it moves, whichever function the program called.
. test/libinterpose/common.bash

for call in fread getc getc_unlocked; do
  limited read=100MB/s "$PROGRAMS/loop" $call 500000 "$DIR" >"$SCRATCH/log" || fail "$call: $?"
  counted 495000 1048576 channel read amount
done
limited read=100MB/s "$PROGRAMS/loop" getline 2 "$DIR" >"$SCRATCH/log" || fail "getline: $?"
counted 1040000 4200000 channel read amount
limited write=100MB/s "$PROGRAMS/loop" fwrite 5000 "$DIR" 100 >"$SCRATCH/log" || fail "fwrite: $?"
counted 495000 505000 channel write amount
limited write=100MB/s "$PROGRAMS/loop" fprintf 5000 "$DIR" >"$SCRATCH/log" || fail "fprintf: $?"
counted 495000 505000 channel write amount
