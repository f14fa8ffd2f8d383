#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Another preloaded library answers for the clock, before and after us: it shows a time that stands
# still, and makes metered calls to find it. The program sees that time, and waits as the limit
# says all the same; so does `sluice run`, which has the library in the first case.
. test/libinterpose/common.bash

clock=$PROGRAMS/frozen_clock
for i in $(seq 40); do echo "$i" >"$DIR/n$i"; done
cat >"$SCRATCH/work.sh" <<'P'
date +%s
cat "$1"/n? "$1"/n??
P
(echo 1000000000 && cat "$DIR"/n? "$DIR"/n??) >"$SCRATCH/expected"

check() { # WHEN
  cmp "$SCRATCH/expected" "$SCRATCH/out" || fail "$1: $(cat "$SCRATCH/out")"
  counted 1 60 channel open delayed
}
LD_PRELOAD=$clock limited open=50/s,stat=1M/s sh "$SCRATCH/work.sh" "$DIR" >"$SCRATCH/out" ||
  fail "after us: $?"
check 'after us'
limited open=50/s,stat=1M/s sh -c \
  "LD_PRELOAD=$clock:\$LD_PRELOAD exec sh $SCRATCH/work.sh $DIR" >"$SCRATCH/out" ||
  fail "before us: $?"
check 'before us'
