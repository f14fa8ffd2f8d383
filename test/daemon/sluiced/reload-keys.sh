#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SIGHUP and keys: a list that is missing, dangling or empty locks nobody out, one from which the
# last name was taken off counts, and the log says that a new pair waits for a restart.
set -u
. test/lib/site.bash
policy "$SCRATCH/p.json"
keys() { "$SLUICED" keys "$@" >"$SCRATCH/out" 2>&1 || fail "keys $*: $(cat "$SCRATCH/out")"; }
dir=$SCRATCH/keys
keys new --dir "$dir" ctl
keys new --dir "$SCRATCH/n1" n1
keys allow --dir "$dir" --role node n1 "$SCRATCH/n1/public"
start cluster --role cluster --policy "$SCRATCH/p.json" --run-dir "$SCRATCH/run" \
  --listen 'tcp://127.0.0.1:*' --keys "$dir"

says() { [ "$(grep -c "$1" "$LOG")" = "$2" ]; }
# reread NUMBER LINE: after a SIGHUP the log has so many of it.
reread() {
  kill -HUP "$PID"
  until_true 20 says "$2" "$1" || fail "$3: not $1 times \"$2\": $(cat "$LOG")"
}
refused='everything stays why=.*allowed: missing or empty, and 1 may connect now'
taken='configuration read again'
cp "$dir/allowed" "$SCRATCH/list"
rm "$dir/allowed"
reread 1 "$refused" 'a list that is missing'
ln -s "$SCRATCH/nowhere" "$dir/allowed"
reread 2 "$refused" 'a list that dangles'
rm "$dir/allowed"
: >"$dir/allowed"
reread 3 "$refused" 'an empty list'
rm "$dir/allowed"
mkfifo "$dir/allowed"
reread 1 'everything stays why=.*allowed: not a file' 'a pipe'
rm "$dir/allowed"
says "$taken" 0 || fail "a list without a line was taken: $(cat "$LOG")"
cp "$SCRATCH/list" "$dir/allowed"
reread 1 "$taken" 'the list as it was'
keys revoke --dir "$dir" n1
reread 2 "$taken" 'a list whose last name was taken off'
says 'waits for a restart' 0 || fail "nothing waits: $(cat "$LOG")"
keys new --dir "$dir" --replace ctl
reread 1 'waits for a restart what=.*pair of keys' 'a new pair'
stop "$PID"
