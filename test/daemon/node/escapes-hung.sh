#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# A user's process whose own file system does not answer hides no process of another user: it is
# gone round, and both are told.
set -u
. test/lib/site.bash
. test/lib/static_reader.bash
two_users
need python3 bindfs
mkdir -m 755 "$SCRATCH"/{n1,real,hung}
mkdir -m 777 "$SCRATCH/real/tree"
static_reader "$SCRATCH/busy"
cp "$SCRATCH/busy" "$SCRATCH/real/tree/busy"
bindfs -f -o attr_timeout=0,entry_timeout=0 "$SCRATCH/real" "$SCRATCH/hung" \
  >"$SCRATCH/bindfs.log" 2>&1 &
server=$!
over() {
  kill -CONT "$server"
  exec 9>&-
  wait "${runs[@]}"
  kill -9 "${pids[@]}" 2>/dev/null
  umount -l "$SCRATCH/hung"
  wait
  rm -rf "$SCRATCH"
}
runs=()
trap over EXIT
until_true 20 test -d "$SCRATCH/hung/tree" || skip "no FUSE here: $(cat "$SCRATCH/bindfs.log")"
policy "$SCRATCH/p.json"
start n1 --role node --name n1 --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/n1"

# What they read from: they end when it does.
mkfifo "$SCRATCH/hold"
exec 9<>"$SCRATCH/hold"
begin() { # UID JOB PROGRAM
  as "$1" "$SLUICE" run --job "$2" --run-dir "$SCRATCH/n1" -- "$3" \
    <"$SCRATCH/hold" >"$SCRATCH/$2.out" 2>&1 9>&- &
  runs+=($!)
}
escapes() { # JOB WHY
  "$SLUICE" --run-dir "$SCRATCH/n1" jobs --json >"$SCRATCH/jobs" || return 1
  [ "$(json "$SCRATCH/jobs" "any('$2' in e['why'] for j in d if j['job'] == '$1'
    for e in j['escaped'])")" = True ]
}
begin $ann hers "$SCRATCH/hung/tree/busy"
until_true 60 escapes hers 'static program' || fail "hers: $(cat "$SCRATCH"/{jobs,hers.out})"
kill -STOP "$server"
begin $bob his "$SCRATCH/busy"
until_true 90 escapes his 'static program' || fail "his: $(cat "$SCRATCH"/{jobs,his.out} "$LOG")"
escapes hers 'cannot be looked at' || fail "hers is not told: $(cat "$SCRATCH/jobs")"
grep -q "cannot be looked at.*uid=$ann" "$LOG" || fail "not in the log: $(cat "$LOG")"
kill -CONT "$server"
until_true 60 escapes hers 'static program' || fail "hers, again: $(cat "$SCRATCH/jobs")"
