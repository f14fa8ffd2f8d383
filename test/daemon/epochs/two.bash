# SPDX-License-Identifier: Apache-2.0
# For tests of what the jobs of one user, ann, do to the gates of another, bob: a node without
# journals. All that is mounted is below $SCRATCH.
. test/lib/node.bash
own_mounts
two_users
need pgrep python3
[ -x "$PROGRAMS/keep_asking" ] || skip "needs $PROGRAMS/keep_asking"
cp /bin/sleep "$SCRATCH/nap"
cp "$PROGRAMS/keep_asking" "$SCRATCH/"
AFTER='"after": {"write": "*/MANIFEST*", "durable": "*/rank*", "patience"'

servers= ctl=
end_two() { # their processes of this test: others have the same uids
  [ -z "$servers" ] || kill -9 $servers
  [ -z "$ctl" ] || kill "$ctl"
  pkill -9 -u "$ann" -f "$SCRATCH/"
  pkill -9 -u "$bob" -f "$SCRATCH/"
  end_node
  umount -l "$RUN/jobs/$ann@"*/order "$SCRATCH/far" "$SCRATCH/cover" 2>/dev/null
  rm -rf "$SCRATCH"
}
trap end_two EXIT

# serve NAME OP: a FUSE at $SCRATCH/NAME, which does not answer these requests once NAME-armed is
# there.
serve() {
  mkdir "$SCRATCH/$1"
  python3 test/lib/hung_fuse.py "$SCRATCH/$1" "$SCRATCH/$1-armed" "$2" 2>"$SCRATCH/fuse.log" &
  servers="$servers $!"
  until_true 20 test -e "$SCRATCH/$1/f" || skip "no FUSE here: $(cat "$SCRATCH/fuse.log")"
}

# start_below: a cluster of one node, with $SCRATCH/site.json.
start_below() {
  local port
  port=$(free_port)
  "$SLUICED" --role cluster --name ctl --run-dir "$SCRATCH/ctl" --policy "$SCRATCH/site.json" \
    --plain --listen "tcp://127.0.0.1:$port" --metrics none >"$SCRATCH/log-ctl" 2>&1 &
  ctl=$!
  until_true "$SLUICE" --run-dir "$SCRATCH/ctl" policy get || fail "$(cat "$SCRATCH/log-ctl")"
  "$SLUICED" --role node --name n1 --run-dir "$RUN" --plain --parent "tcp://127.0.0.1:$port" \
    --metrics none >"$SCRATCH/log" 2>&1 &
  NODE=$!
  until_true $S policy get || fail "$(cat "$SCRATCH/log")"
}

# Whoever of the daemon's children syncs: what it had before anybody asked does not count.
children() { pgrep -P "$NODE" | wc -l; }
syncs() { echo $(($(children) - at_rest)); }
hang() { ps -o stat= --ppid "$NODE" | grep -c ^D; }

# jobs PREFIX COUNT: of ann, each with a process that stays.
jobs() {
  local i
  for i in $(seq "$2"); do
    as "$ann" "$SLUICE" --run-dir "$RUN" run --job "$1$i" --no-summary -- "$SCRATCH/nap" 1000 \
      2>>"$SCRATCH/err" &
    until_true 60 test -e "$RUN/jobs/$ann@$1$i/after" || fail "no job $1$i: $(cat "$SCRATCH/err")"
  done
}

end_jobs() { # all of them, and their folders go
  pkill -9 -u "$ann" -f "$SCRATCH/"
  pkill -9 -u "$bob" -f "$SCRATCH/"
  until_true 60 no_jobs || fail "jobs that are over stay: $(ls -A "$RUN/jobs")"
}

# ask PREFIX FLAGS...: in all these jobs of hers; what is said is in $SCRATCH/PREFIX.
ask() {
  local prefix=$1
  shift
  as "$ann" "$SCRATCH/keep_asking" "$@" "$RUN/jobs/$ann@$prefix"* >"$SCRATCH/$prefix" &
  until_true 60 grep -q asked "$SCRATCH/$prefix" || fail "nothing was taken: $(tail "$SCRATCH/log")"
}
refused() { grep -q "^refused $2\$" "$SCRATCH/$1"; } # PREFIX COUNT: each of its questions

# of_bob NUMBER: he writes a part, and then what names it.
of_bob() {
  as "$bob" "$SLUICE" --run-dir "$RUN" run --job "b$1" --no-summary -- \
    sh -c "echo r > '$DATA/rank$1' && echo m > '$DATA/MANIFEST$1'" 2>>"$SCRATCH/err" &&
    [ -s "$DATA/MANIFEST$1" ]
}
