#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A target in a target: calls in the inner one count on both, calls beside it on the outer only.
. test/libinterpose/common.bash

mkdir -p "$DIR/t/inner"
"$PROGRAMS/loop" prepare 1 "$DIR/t/inner" >"$SCRATCH/log"
"$PROGRAMS/loop" prepare 1 "$DIR/t" >"$SCRATCH/log"
both="stat=5000/s@$DIR/t,stat=4000/s@$DIR/t/inner"
limited "$both" "$PROGRAMS/loop" stat 40 "$DIR/t" >"$SCRATCH/log" || fail "status $?"
counted 40 40 channel "stat@$DIR/t" calls
counted 0 0 channel "stat@$DIR/t/inner" calls
limited "$both" "$PROGRAMS/loop" stat 40 "$DIR/t/inner" >"$SCRATCH/log" || fail "status $?"
counted 40 40 channel "stat@$DIR/t" calls
counted 40 40 channel "stat@$DIR/t/inner" calls
