#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# A log daemon that dies, hangs or takes requests and answers nobody: the program goes on with the
# file's own fsync, within bounded time, and the file bears the mark that recovery looks for.
. test/lib/order.bash
need pgrep python3

all_marked() {
  local file
  for file in "$DATA"/loop*; do
    [ -n "$(mark_of "$file")" ] || fail "$1: $file bears no mark"
  done
}

with_fake sync
loop left_alone
# On a machine that is busy enough a living daemon may be silent for a moment.
[ "$(json "$SCRATCH/report.json" 'd["order"]["silent"] + d["order"]["absent"]')" -gt 0 ] ||
  [ -z "$(mark_of "$DATA/loop0")" ] || fail 'a file is marked though the daemon answered'
loop killed
all_marked killed
grep -q 'the journal daemon ended (signal 9)' "$SCRATCH/said" || fail 'nobody was told that it died'
loop stopped
all_marked stopped
ORDER_FAKE=native
loop killed
all_marked 'killed, native'

# What became of each fsync, in words.
"$SLUICE" --run-dir "$SCRATCH/run" run --order "durable@$DATA" --summary -- \
  "$PROGRAMS/order_loop" "$DATA" 1 100 >"$SCRATCH/counts" 2>"$SCRATCH/said" ||
  fail "status $?: $(cat "$SCRATCH/said")"
grep -q 'durable: synced by the program, as the daemon could not .*: [1-9]' "$SCRATCH/said" ||
  fail "the summary says $(cat "$SCRATCH/said")"
