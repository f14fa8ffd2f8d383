#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# Processes that sync, and are not even killed while a file server does not answer: at the root of a
# target, or at what a user mounted over the name of his order area. They count for their user until
# they are gone, also when his jobs are over. Others have their own.
set -u
. test/daemon/epochs/two.bash
serve cover 14 # OPEN
serve far 27   # OPENDIR
cat >"$SCRATCH/policy.json" <<END
{"targets": {"data": {"path": "$DATA", "order": "durable", $AFTER: "1s"}},
             "far": {"path": "$SCRATCH/far", $AFTER: "1s"}}}}
END
start_node
at_rest=$(children)
number=0
opens() { of_bob $((number += 1)); }
all_hang() { [ "$(hang)" -ge 4 ]; }
# rounds PREFIX: several times all of her questions are refused.
rounds() {
  local i
  for i in 1 2 3 4 5; do
    until_true 60 refused "$1" "$i" || fail "$1: not refused $i times: $(tail "$SCRATCH/log")"
    [ "$(syncs)" -le 4 ] || fail "$1, round $i: $(syncs) processes of one user, $(hang) hang"
  done
}

# She mounts over the names of her order areas. Nobody asks there.
jobs o 6
ask o --no-heart
for order in "$RUN/jobs/$ann@o"*/order; do mount --bind "$SCRATCH/cover/f" "$order"; done
touch "$SCRATCH/cover-armed"
rounds o
[ "$(hang)" = 0 ] || fail "$(hang) hang at a name of hers"
until_true 60 opens || fail "bob's gate stays shut: $(tail "$SCRATCH/log")"
umount -l "$RUN/jobs/$ann@o"*/order
end_jobs

# The root of a target does not answer. Bob has a job meanwhile.
jobs h 6
as "$bob" "$SLUICE" --run-dir "$RUN" run --job long --no-summary -- "$SCRATCH/nap" 1000 \
  2>>"$SCRATCH/err" &
until_true 60 test -e "$RUN/jobs/$bob@long/after" || fail "no job of bob's: $(cat "$SCRATCH/err")"
touch "$SCRATCH/far-armed"
ask h
rounds h
until_true 60 all_hang || fail "only $(hang) hang"
rm "$SCRATCH/far-armed"
until_true 60 opens || fail "bob's gate stays shut: $(tail "$SCRATCH/log")"

# All jobs are over, these processes are not. They keep no file of a job.
end_jobs
jobs i 6
ask i
rounds i
all_hang || fail "only $(hang) hang"
until_true 60 opens || fail "bob's gate stays shut: $(tail "$SCRATCH/log")"

# What hung them is gone, and so are they.
kill -9 $servers
servers=
none() { [ "$(syncs)" = 0 ]; }
until_true 60 none || fail "$(syncs) processes stay: $(ps -o pid,stat --ppid "$NODE")"
exit 0
