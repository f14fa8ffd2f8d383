#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that only asks whether it could enter a sandbox is metered as before.
. test/libinterpose/common.bash

guest read=1000/s "$PROGRAMS/unusual" seccomp_probe "$DIR"
counted 20 20 channel read calls
counted 0 0 passthrough sandboxed calls

# Two threads that ask at once, and are refused, leave it as it was.
guest stat=1M/s,read=1M/s "$PROGRAMS/sandbox_tries" "$DIR"
counted 100 100 channel stat calls
counted 100 100 channel read calls
counted 0 0 passthrough sandboxed calls

# A child that comes while another thread tries is metered, whatever becomes of the try.
limited stat=1M/s "$PROGRAMS/sandbox_tries" "$DIR" fork || fail "fork: status $?"
counted 1000 1000 channel stat calls

# A stage that stays out, for its segment is none, is in nobody's way.
mkdir "$SCRATCH/none" && cp "$SLUICE_LIB" "$SCRATCH/none/"
head -c 100 /dev/zero >"$SCRATCH/none/segment"
LD_PRELOAD=$SCRATCH/none/libinterpose.so "$PROGRAMS/sandbox_tries" "$DIR" fork ||
  fail "a stage that stays out: status $?"
