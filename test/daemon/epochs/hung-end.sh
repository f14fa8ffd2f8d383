#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Jobs of a node of a cluster end while a target's root does not answer: what they wrote is lost for
# the cluster, and their folders go. So they take no place of their user's next jobs.
set -u
. test/daemon/epochs/two.bash
ctl=
over() {
  [ -z "$ctl" ] || kill "$ctl"
  end_two
}
trap over EXIT
serve far 27 # OPENDIR
cat >"$SCRATCH/site.json" <<END
{"targets": {"far": {"path": "$SCRATCH/far", $AFTER: "1s"}}}, "control": {"nodes": "n1"}}
END
port=$(free_port)
"$SLUICED" --role cluster --name ctl --run-dir "$SCRATCH/ctl" --policy "$SCRATCH/site.json" \
  --plain --listen "tcp://127.0.0.1:$port" --metrics none >"$SCRATCH/log-ctl" 2>&1 &
ctl=$!
until_true "$SLUICE" --run-dir "$SCRATCH/ctl" policy get || fail "$(cat "$SCRATCH/log-ctl")"
"$SLUICED" --role node --name n1 --run-dir "$RUN" --plain --parent "tcp://127.0.0.1:$port" \
  --metrics none >"$SCRATCH/log" 2>&1 &
NODE=$!
until_true $S policy get || fail "$(cat "$SCRATCH/log")"
at_rest=$(children)
jobs h 6
touch "$SCRATCH/far-armed"
end_jobs
[ "$(syncs)" -le 4 ] || fail "$(syncs) processes of one user"
[ "$(hang)" -ge 1 ] || fail 'none hangs'
exit 0
