#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A segment that is cut short while it is mapped ends its users by SIGBUS; without a signal handler
# in the guest nothing can be done about that. So nobody but the job's owner may write to it: that
# is what must hold. Whether a guest survives its owner's doing so is reported, not required.
. test/libinterpose/common.bash

segment=$SCRATCH/run/jobs/cut/segment
TIME=30 JOB=cut limited read=2000/s "$PROGRAMS/steady" 1.5 "$DIR" >"$SCRATCH/out" 2>"$SCRATCH/err" &
at_work cut
[ "$(stat -c %a "$segment")" = 600 ] || fail "the segment has mode $(stat -c %a "$segment")"
[ "$(stat -c %a "$SCRATCH/run")" = 700 ] || fail "the run directory is open to others"
: >"$segment"
wait $! 2>"$SCRATCH/log"
[ -s "$SCRATCH/out" ] || skip 'known limit: a truncated segment ends the guest by SIGBUS'
