#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A user takes the pages of his segment away, again and again, in a process that has next to no
# processor. Who touches one meanwhile waits until he is done. The daemon does not: it answers,
# explains that job, and changes others' limits, while a punch is under way.
set -u
. test/lib/node.bash
two_users
policy 5k/s
start_node
trap 'end_programs $ann $bob; rm -rf "$SCRATCH"' EXIT
has_job() { $S jobs 2>/dev/null | grep -q "$1"; }
job $ann ours sh -c "while [ -e '$SCRATCH/data/file' ]; do sleep 0.2; done" &
until_true 20 has_job ours || fail 'no job of hers'
mkdir -m 777 "$SCRATCH/his"
as $bob $S run --no-summary --job his --small "strict@$SCRATCH/his" -- \
  "$PROGRAMS/puncher" "$RUN/jobs/$bob@his" "$SCRATCH/his/counts" 2>"$SCRATCH/err" &
counts() { od -An -tu8 "$SCRATCH/his/counts" 2>/dev/null; }
begun_of() { counts | awk '{print $1}'; }
is_under_way() { counts | awk '$1 > $2 {is = 1} END {exit !is}'; }
until_true 60 is_under_way || fail "he does not punch: $(cat "$SCRATCH/err")"
# To map or unmap a file waits for a punch as well.
! grep "/$bob@his/" "/proc/$NODE/maps" || fail 'the daemon maps a file of his'

# Each answer makes sure that the daemon has looked at its jobs, every 120 ms at the latest.
most=0
all_within_one_punch() {
  is_under_way || return 1
  local punch said=0
  punch=$(begun_of)
  $S set ours metadata@scratch=10/s || return 1
  while is_under_way && [ "$punch" = "$(begun_of)" ] && [ "$said" -lt 60 ]; do
    $S jobs && $S explain --job his || return 1
    said=$((said + 1))
  done
  [ "$said" -le "$most" ] || most=$said
  [ "$said" -ge 60 ]
}
until_true 60 all_within_one_punch || fail "$most of 60 questions were answered within a punch"
kill -0 "$NODE" || fail "the daemon has ended: $(tail -3 "$SCRATCH/log")"
