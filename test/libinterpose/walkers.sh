#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# readdir, nftw and glob do their work inside libc and are charged for it.
. test/libinterpose/common.bash

limited none "$PROGRAMS/loop" readdir 20 "$DIR" >"$SCRATCH/log" || fail "readdir: $?"
counted 20 20 op opendir calls
counted 20 60 op readdir calls
limited walk=5000/s "$PROGRAMS/loop" nftw 20 "$DIR" >"$SCRATCH/log" || fail "nftw: $?"
counted 20 2000 channel walk amount
limited walk=5000/s "$PROGRAMS/loop" glob 20 "$DIR" >"$SCRATCH/log" || fail "glob: $?"
counted 20 2000 channel walk amount
